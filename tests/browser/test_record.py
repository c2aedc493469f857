"""The page of the record in a browser: verify with progress, export, and check the file there."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import looking
from tests.browser.conftest import House, Visit

pytestmark = pytest.mark.browser


@pytest.mark.slow("a story of the record")
def test_an_administrator_verifies_exports_and_checks_the_record(house: House, visit: Visit, tmp_path: Path) -> None:
    page = visit(house.server, house.alice)
    page.goto(f"{house.server.url}/record/")
    looking.check(page)
    # The page comes anew with what was found; she may have verified it before, too.
    with page.expect_event("framenavigated"):
        page.get_by_role("button", name="Verify now").click()
    expect(page.get_by_text("verified by alice")).to_be_visible()
    with page.expect_download() as begun:
        page.get_by_role("button", name="Export", exact=True).click()
    file = tmp_path / "record.jsonl"
    begun.value.save_as(file)
    page.get_by_label("Export or receipt").set_input_files(file)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_text("Unchanged since it was written on")).to_be_visible()
    looking.check(page)
    file.write_bytes(file.read_bytes().replace(b"record.exported", b"record.imported"))
    page.get_by_label("Export or receipt").set_input_files(file)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_text("Not genuine")).to_be_visible()
    looking.check(page)


@pytest.mark.slow("another story of the record")
def test_a_seal_that_somebody_noted_and_the_record_lacks_is_named(house: House, visit: Visit) -> None:
    page = visit(house.server, house.alice)
    page.goto(f"{house.server.url}/record/")
    page.get_by_text("Compare with your notes").click()
    page.get_by_label("Hash of a seal you noted").fill("ab" * 32)
    page.get_by_role("button", name="Verify now").click()
    expect(page.get_by_text("is not in the record")).to_be_visible(timeout=30_000)
    looking.check(page)
