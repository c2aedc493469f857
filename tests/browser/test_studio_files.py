"""The Studio beside its editor: versions and going back, tests, a tool's way out of one house and into another."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.chatting import approve
from tests.browser.conftest import House, Visit
from tests.processes import Server

pytestmark = pytest.mark.browser

SHOUT: Final = 'def run(text: str) -> str:\n    """Say it loudly."""\n    return text.upper()\n'
TWICE: Final = SHOUT.replace("text.upper()", 'f"{text} {text}".upper()')


def written(house: House, name: str, **fields: Any) -> None:
    """A draft of alice, with a second version."""
    made = house.alice.post("/api/tools", {"name": name, "code": SHOUT, "hitlMode": "DISABLED", **fields})
    assert made.status_code == 201, made.text


def saved(page: Page, title: str) -> None:
    page.get_by_label("Title").fill(title)
    page.get_by_role("button", name="Save", exact=False).first.click()
    expect(page.get_by_text("Saved.")).to_be_visible()


@pytest.mark.slow("another story of the Studio")
def test_a_tool_goes_back_to_what_it_was_and_to_asking_less_often_only_after_a_second_yes(
    house: House, author: Page, server: Server, visit: Visit
) -> None:
    name = "goes_back"
    written(house, name)
    assert house.alice.get(f"/api/tools/{name}").json()["hitlMode"] == "DISABLED"
    author.goto(f"{server.url}/studio/tools/{name}")
    author.locator("#tool-form").get_by_text("Ask", exact=True).click()
    saved(author, "Louder")
    author.get_by_role("link", name="Versions", exact=True).click()
    expect(author.get_by_role("row")).to_have_count(3)
    looking.check(author)
    author.get_by_role("link", name="What changed in version 2").click()
    expect(author.get_by_role("heading", name="From version 1 to 2")).to_be_visible()
    expect(author.locator(".change", has_text="Louder")).to_be_visible()
    looking.check(author)
    author.get_by_role("button", name="Restore version 1").click()
    asked = author.get_by_role("alert")
    expect(asked).to_contain_text("Reduce human oversight?")
    looking.check(author)
    assert house.alice.get(f"/api/tools/{name}").json()["hitlMode"] == "REQUIRED"
    asked.get_by_label("I understand that fewer calls will be reviewed than now").check()
    asked.get_by_role("button", name="Restore version 1").click()
    expect(author.get_by_role("status")).to_contain_text("its content is version 3 now")
    expect(author.locator(".editor-head")).not_to_contain_text("Louder")
    assert house.alice.get(f"/api/tools/{name}").json()["hitlMode"] == "DISABLED"
    visit.watch(author).expect("status of 422")


@pytest.mark.slow("another story of the Studio")
def test_tests_are_kept_and_say_what_differs(house: House, author: Page, server: Server) -> None:
    written(house, "tested")
    author.goto(f"{server.url}/studio/tools/tested/cases")
    looking.check(author)
    for name, expected in (("loud", "HI"), ("quiet", "hi")):
        author.get_by_label("Name", exact=True).fill(name)
        author.get_by_label("Arguments").fill('{"text": "hi"}')
        author.get_by_label("Expected", exact=True).fill(expected)
        author.get_by_role("button", name="Add test").click()
        expect(author.get_by_role("heading", name=name)).to_be_visible()
    author.get_by_role("button", name="Run all").click()
    expect(author.locator("#tally")).to_have_text("1 of 2 passed")
    failed = author.locator("li.panel", has=author.get_by_role("heading", name="quiet"))
    expect(failed).to_contain_text("The result differs.")
    expect(failed.locator(".diff tr.gone .text")).to_have_text("hi")
    expect(failed.locator(".diff tr.come .text")).to_have_text("HI")
    looking.check(author)
    author.get_by_role("button", name="Delete test quiet").click()
    expect(author.locator("#tally")).to_have_text("1 of 1 passed")


@pytest.mark.slow("another story of tools in files")
def test_a_test_of_a_gated_tool_is_answered_where_it_stands(house: House, author: Page, server: Server) -> None:
    written(house, "asks_first", hitlMode="REQUIRED", promptTemplate="Shout {args.text}")
    case = {"name": "loud", "arguments": {"text": "hi"}, "expectation": "equals", "expected": "HI"}
    assert house.alice.post("/api/tools/asks_first/cases", case).status_code == 201
    author.goto(f"{server.url}/studio/tools/asks_first/cases")
    author.get_by_role("button", name="Run all").click()
    expect(author.locator("#tally")).to_have_text("0 of 1 passed, 1 waits for an answer")
    looking.check(author)
    card = author.locator("[data-ask]")
    approve(card)
    expect(author.locator("#tally")).to_have_text("1 of 1 passed")
    expect(card).to_have_count(0)


@pytest.mark.slow("another story of the Studio")
def test_a_tool_is_exported_and_comes_back_by_an_import(
    house: House, author: Page, server: Server, tmp_path: Path
) -> None:
    name = "travels"
    written(house, name, title="Travels", category="Text")
    author.goto(f"{server.url}/studio/export")
    looking.check(author)
    author.get_by_role("checkbox", name=re.compile(rf"^{name}\b")).check()
    with author.expect_download() as download:
        author.get_by_role("button", name="Export selected").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert [tool["name"] for tool in json.loads(file.read_text())["tools"]] == [name]

    author.goto(f"{server.url}/studio/tools/{name}/delete")
    author.get_by_role("button", name=f"Delete {name}").click()
    author.goto(f"{server.url}/studio/import")
    looking.check(author)
    author.get_by_label("File").set_input_files(file)
    author.get_by_role("button", name="Preview import").click()
    expect(author.locator("main")).to_contain_text("1 new")
    looking.check(author)
    author.get_by_role("button", name="Import 1 tool").click()
    expect(author.get_by_role("heading", name="Imported")).to_be_visible()
    looking.check(author)
    author.get_by_role("link", name=name, exact=True).click()
    expect(author.get_by_role("heading", level=1)).to_have_text(name)
    back = house.alice.get(f"/api/tools/{name}").json()
    assert (back["title"], back["category"], back["published"]) == ("Travels", "Text", False)


@pytest.mark.slow("another story of tools in files")
def test_a_file_that_is_wrong_says_where_and_a_tool_that_is_replaced_shows_first_what_would_change(
    house: House, author: Page, server: Server, tmp_path: Path, visit: Visit
) -> None:
    file = tmp_path / "tools.json"
    wrong = [{"name": "../../etc", "code": SHOUT}, {"name": "b", "code": 1, "<img src=x>": 1}]
    file.write_text(json.dumps({"format": "hitlchat.tools", "version": 1, "tools": wrong}))
    author.goto(f"{server.url}/studio/import")
    author.get_by_label("File").set_input_files(file)
    author.get_by_role("button", name="Preview import").click()
    said = author.get_by_role("alert")
    expect(said).to_contain_text("Nothing was imported.")
    for place in ("tools[0].name", "tools[1].code", "tools[1].<img src=x>"):
        expect(said).to_contain_text(place)
    looking.check(author)
    visit.watch(author).expect("status of 422")

    written(house, "replaced")
    tool = {"name": "replaced", "code": TWICE, "capabilities": {"store": True}, "hitlMode": "DISABLED"}
    file.write_text(json.dumps({"format": "hitlchat.tools", "version": 1, "tools": [tool]}))
    author.goto(f"{server.url}/studio/import")
    author.get_by_label("File").set_input_files(file)
    author.get_by_role("button", name="Preview import").click()
    expect(author.get_by_role("button", name="Import 0 tools")).to_be_disabled()
    author.get_by_label("Replace").check()
    author.get_by_role("button", name="Update the plan").click()
    plan = author.locator("li.panel")
    expect(plan).to_contain_text("The file says “Never ask”")
    plan.get_by_text("Differences from the existing tool").click()
    expect(plan.locator(".diff tr.come .text").first).to_be_visible()
    looking.check(author)
    author.get_by_role("button", name="Import 1 tool").click()
    expect(author.locator("main")).to_contain_text("1 replaced")
    replaced = house.alice.get("/api/tools/replaced").json()
    assert (replaced["code"], replaced["hitlMode"], replaced["version"]) == (TWICE, "REQUIRED", 2)


@pytest.mark.slow("another story of tools in files")
def test_the_sandbox_has_a_page_and_the_reference_one_with_a_list_of_its_sections(author: Page, server: Server) -> None:
    author.goto(f"{server.url}/studio/")
    author.get_by_role("link", name="Sandbox", exact=True).click()
    expect(author.get_by_role("heading", level=1)).to_have_text("Sandbox")
    expect(author.locator(".walls li")).to_have_count(5)
    looking.check(author)
    author.goto(f"{server.url}/studio/")
    author.get_by_role("link", name="Tool Python", exact=True).click()
    contents = author.get_by_role("navigation", name="On this page")
    link = contents.get_by_role("link").last
    title = link.inner_text()
    link.click()
    expect(author.get_by_role("heading", name=title, exact=True)).to_be_in_viewport()
    looking.check(author)
