"""From an empty folder to a tool that asks: the link, the Studio, the chat."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.chatting import Chat, approve
from tests.browser.conftest import Visit
from tests.processes import STEADY, Installation, Server, Servers

pytestmark = pytest.mark.browser

PARCEL = '''def run(address: str, weight_kg: float = 1.0) -> str:
    """Send a parcel.

    address: where it goes
    """
    return f"A parcel of {weight_kg} kg is on its way to {address}."
'''

# Its fault lies on a way that the test does not take.
UNSOUND = '''def run(text: str) -> str:
    """Say it."""
    if text == "never":
        return text + 1
    return text
'''

# Of text, as it is laid out.
LINES: Final = """element => {
  const range = document.createRange();
  range.selectNodeContents(element);
  return new Set([...range.getClientRects()].map(each => Math.round(each.top))).size;
}"""
PASTE: Final = """(element, text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def empty_house(tmp_path: Path) -> Iterator[Server]:
    """A server on an empty folder, with the demo model."""
    home = Installation(tmp_path / "data")
    home.manage("migrate", "-v", "0")
    servers = Servers(home)
    yield servers.start(**STEADY)
    servers.close()


def write_code(page: Page, code: str) -> None:
    """Into the editor, by the keyboard."""
    page.locator("[data-code] .ace_content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(code)


def test_from_the_link_to_a_tool_of_ones_own_that_the_agent_uses_after_a_yes(empty_house: Server, visit: Visit) -> None:
    link = re.search(r"http://\S+/welcome/\S+", empty_house.log)
    assert link
    page = visit(empty_house)
    _become_administrator(page, link.group())
    _write_tool(page)
    _try_it_in_the_studio(page)
    page.get_by_role("button", name="Publish version 1").click()
    expect(page.locator("#standing")).to_contain_text("agents can call it")
    _use_it_in_the_chat(page, empty_house)

    page.get_by_role("link", name="Chat", exact=True).click()
    steps = page.get_by_role("region", name="Next steps")
    expect(steps.get_by_role("listitem")).to_have_count(3)
    looking.check(page)
    steps.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("heading", name="What would you like to do?")).to_be_visible()
    expect(steps).to_have_count(0)

    page.goto(link.group())
    expect(page.get_by_role("heading")).to_have_text("This link no longer works")
    looking.check(page)
    visit.watch(page).expect("status of 410")


def _become_administrator(page: Page, link: str) -> None:
    page.goto(link)
    looking.check(page)
    page.get_by_label("Username").fill("mira")
    page.get_by_label("Password").fill("short")
    page.get_by_role("button", name="Create the administrator").click()
    # The field that was wrong, and not the first one.
    expect(page.get_by_label("Password")).to_be_focused()
    page.get_by_label("Password").fill("a long enough pass phrase")
    page.get_by_role("button", name="Create the administrator").click()
    expect(page.get_by_role("heading", name="What would you like to do?")).to_be_visible()


def _write_tool(page: Page) -> None:
    page.get_by_role("link", name="Studio", exact=True).click()
    page.get_by_role("link", name="New", exact=True).click()
    page.get_by_label("Name", exact=True).fill("send_parcel")
    # Over the starter, which nobody has touched.
    page.locator("[data-code] .ace_text-input").evaluate(PASTE, PARCEL)
    expect(page.locator("#inspection")).to_contain_text("where it goes")
    expect(page.locator("#inspection [data-finding]")).to_have_count(0)
    page.get_by_text("Ask", exact=True).click()
    page.get_by_label("Approval prompt").fill("Send a parcel to {args.address}")
    page.get_by_role("button", name="Create draft").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("send_parcel")
    expect(page.locator("#standing")).to_contain_text("nobody can call it yet")


def _try_it_in_the_studio(page: Page) -> None:
    page.get_by_label("address").fill("Oslo")
    page.get_by_role("button", name="Run test").click()
    pane = page.locator("#test-result")
    card = pane.locator("[data-ask]")
    expect(card.get_by_role("heading")).to_have_text("Send a parcel to Oslo")
    approve(card)
    expect(pane).to_contain_text("A parcel of 1.0 kg is on its way to Oslo.")
    expect(card).to_have_count(0)


def _use_it_in_the_chat(page: Page, server: Server) -> None:
    page.get_by_role("link", name="Chat", exact=True).click()
    page.get_by_label("Message").fill("send_parcel address=Bergen weight_kg=2")
    page.get_by_role("button", name="Send").click()
    chat = Chat(page, server, "")
    chat.decline()
    expect(chat.call("declined")).to_have_count(1)
    chat.say("send_parcel address=Bergen weight_kg=2")
    chat.approve()
    expect(chat.call("succeeded")).to_have_count(1)
    chat.said("kg is on its way to Bergen.")
    note = page.locator("[data-composer-note]")
    expect(note).to_contain_text("demo model")
    assert note.evaluate(LINES) == 1


@pytest.mark.slow("another story of the Studio")
def test_a_tool_whose_code_does_not_pass_the_check_is_not_published(author: Page, server: Server, visit: Visit) -> None:
    author.goto(f"{server.url}/studio/new")
    author.get_by_label("Name", exact=True).fill("unsound")
    write_code(author, UNSOUND)
    author.get_by_role("button", name="Create draft").click()
    author.get_by_label("text").fill("hi")
    author.get_by_role("button", name="Run test").click()
    author.get_by_role("button", name="Publish version 1").click()
    notice = author.locator(".note[role=alert]")
    expect(notice).to_contain_text("Not published.")
    expect(notice).to_contain_text("Line 4")
    author.goto(f"{server.url}/studio/tools/unsound")
    expect(author.locator("#standing")).to_contain_text("is a draft")
    visit.watch(author).expect("status of 422")


@pytest.mark.slow("another story of the Studio")
def test_what_is_wrong_with_the_code_is_shown_while_it_is_typed_and_leads_to_the_line(
    author: Page, server: Server
) -> None:
    author.goto(f"{server.url}/studio/tools/look")
    write_code(author, "def run(text: str) -> str:\n    return undefined\n")
    problem = author.locator("#inspection [data-line='2']")
    expect(problem).to_be_visible()
    expect(author.locator(".ace_gutter-cell.ace_error, .ace_gutter-cell_svg-icons.ace_error")).to_have_count(1)
    author.on("dialog", lambda dialog: dialog.accept())
    author.goto(f"{server.url}/studio/")


@pytest.mark.slow("waits ten seconds for an answer")
def test_a_question_in_the_studio_that_nobody_answers_ends_on_screen(author: Page, server: Server) -> None:
    author.goto(f"{server.url}/studio/tools/brief")
    author.get_by_role("button", name="Run test").click()
    pane = author.locator("#test-result")
    expect(pane.locator("[data-ask]")).to_be_visible()
    expect(pane.locator("[data-status=expired]")).to_be_visible()
    expect(pane).to_contain_text("Nobody answered in time, and the call did not run.")
    expect(pane.locator("[data-ask]")).to_have_count(0)


@pytest.mark.slow("another story of the Studio")
def test_the_studio_says_that_it_saved_and_what_that_means(author: Page, server: Server, visit: Visit) -> None:
    visit.watch(author).expect("status of 422")
    author.goto(f"{server.url}/studio/tools/many")
    expect(author.get_by_label("Ask when")).to_be_hidden()
    form = author.locator("#tool-form")
    form.get_by_text("Policies decide", exact=True).click()
    expect(author.get_by_label("Ask when")).to_be_visible()
    form.get_by_text("Ask", exact=True).click()
    expect(author.get_by_label("Ask when")).to_be_hidden()
    author.get_by_label("Title").fill("A great many things")
    author.get_by_role("button", name="Save", exact=True).click()
    asked = author.get_by_role("alert").filter(has_text="Approvers read a different title.")
    asked.get_by_label("I understand that fewer calls will be reviewed").check()
    author.get_by_role("button", name="Save", exact=True).click()
    said = author.get_by_text("Saved. Agents now use this version.")
    expect(said).to_be_visible()
    expect(author.locator(".editor-head")).to_contain_text("A great many things")
    expect(author.get_by_role("complementary", name="Tools")).to_contain_text("A great many things")
    looking.check(author)
    author.reload()
    expect(said).to_have_count(0)
