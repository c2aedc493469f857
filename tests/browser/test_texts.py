"""The texts for models: an example beside each field follows what is typed."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import House, Visit
from tests.browser.looking import check

pytestmark = pytest.mark.browser


@pytest.mark.slow("axe at a page")
def test_the_example_follows_what_is_typed_and_a_wrong_placeholder_is_told_at_once(house: House, visit: Visit) -> None:
    page = visit(house.server, house.alice)
    visit.watch(page).expect("status of 422")
    page.goto(f"{house.server.url}/policies")
    page.get_by_role("link", name="Texts for models").click()
    check(page)
    page.get_by_role("link", name="brief").click()
    example = page.get_by_role("region", name="Example: Declined", exact=True)
    expect(example).to_contain_text("The user declined this call.")
    field = page.get_by_label("Declined", exact=True)
    field.fill("Leave {toolName} alone.")
    expect(example).to_contain_text("Leave brief alone.")
    expect(example).to_contain_text("It was not executed. Do not call it again")
    field.fill("Dear {name}")
    expect(page.locator("#example-declined .problem")).to_contain_text("{name} is unknown here")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved.")
    expect(field).to_have_value("Dear {name}")
    check(page)
    field.fill("Leave {toolName} alone.")
    save_after_reading(page)
    expect(page.get_by_role("status")).to_contain_text("Saved.")
    field.fill("")
    save_after_reading(page)
    expect(example).to_contain_text("The user declined this call.")


def save_after_reading(page: Page) -> None:
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Change what models read?")
    expect(page.get_by_label("Yes, I have read them")).to_be_focused()
    page.get_by_label("Yes, I have read them").check()
    page.get_by_role("button", name="Save").click()
