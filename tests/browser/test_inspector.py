"""Someone tries the MCP server as a client of it: connects, calls, is asked as that client's user, and looks inside."""

from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looking
from tests.browser.chatting import press, settle
from tests.browser.conftest import NARROW, House, Visit

pytestmark = pytest.mark.browser

# What the browser says of an answer that names mistakes.
TOLD: Final = "status of 422"
# As another tab does it.
END: Final = """() => {
  const form = document.querySelector("main > header form");
  const sent = new FormData(form);
  sent.set("end", "");
  return fetch(form.action, { method: "POST", body: sent }).then(() => null);
}"""


@pytest.fixture
def bob(visit: Visit, house: House) -> Page:
    page = visit(house.server, house.bob)
    visit.watch(page).expect(TOLD)
    page.goto(f"{house.server.url}/mcp-access/inspector")
    return page


def tool(page: Page, name: str) -> Locator:
    links = page.locator("#inspector-tools").get_by_role("link")
    return links.filter(has=page.locator("code").get_by_text(name, exact=True))


@pytest.mark.slow("a long story of the Inspector")
@pytest.mark.timeout(180)
def test_a_client_is_asked_by_no_early_press_answered_and_everything_it_says_and_hears_is_seen(
    bob: Page, house: House
) -> None:
    bob.get_by_label("Text of an MCP token").fill("none")
    bob.get_by_role("button", name="Connect").click()
    expect(bob.get_by_text("it begins with hitl_mcp_.")).to_be_visible()
    looking.check(bob)
    bob.get_by_text("2025-11-25", exact=True).click()
    bob.get_by_role("button", name="Connect").press("Enter")

    house.sits_at_his_clients()
    empty = bob.get_by_text("The calls of this session and their results.")
    expect(empty).to_be_visible()
    tool(bob, "echo").press("Enter")
    # Not the rest of the list: what is next is what was chosen.
    expect(bob.locator("#tool-head")).to_be_focused()
    bob.get_by_role("textbox", name="text").fill("a <b>text</b>\u202e")
    bob.get_by_role("button", name="Call", exact=True).click()
    asked = bob.get_by_role("article", name="The client asks its user")
    expect(asked).to_contain_text("[Risk L0")
    expect(asked).to_contain_text("a <b>text</b>U+202E")
    expect(bob.get_by_role("textbox", name="text")).to_have_value("a <b>text</b>\u202e")
    looking.check(bob)
    press(asked.get_by_role("button", name="Decline"))
    expect(asked).to_have_count(0)
    expect(bob.locator("#inspector-questions")).to_be_focused()
    calls = bob.locator("#inspector-calls article")
    expect(calls.first).to_contain_text("Error")
    expect(empty).to_be_hidden()

    bob.get_by_text("Arguments as JSON", exact=True).click()
    bob.get_by_role("textbox", name="Arguments as JSON").fill("[1]")
    bob.get_by_role("button", name="Call with this JSON").click()
    expect(bob.get_by_role("alert")).to_contain_text("Arguments are a JSON object")
    bob.get_by_role("textbox", name="Arguments as JSON").fill('{"text": "hello"}')
    bob.get_by_role("button", name="Call with this JSON").click()
    # Presses that were on their way to something else.
    accept = asked.get_by_role("button", name="Accept")
    accept.hover()
    bob.evaluate("window.dispatchEvent(new Event('focus'))")
    for _ in range(3):
        # As impatient as it gets, and with the pause over.
        bob.mouse.down()
        bob.mouse.up()
        settle(bob)
    expect(asked.get_by_text("Move the pointer away from the button and back, then press.")).to_be_visible()
    assert [each["status"] for each in house.bob.get("/api/calls", limit="1").json()] == ["waiting"]
    press(accept)
    expect(calls).to_have_count(2)
    expect(calls.first.get_by_text("Result", exact=True)).to_be_visible()
    expect(calls.first).to_contain_text("hello")

    log = bob.locator("#inspector-log")
    answer = log.locator("li", has_text="elicitation/create").filter(has_text="Client to server").last
    answer.locator("summary").press("Enter")
    expect(answer).to_contain_text('"action": "accept"')
    # What comes in meanwhile does not fold it again.
    before = log.locator("li").count()
    bob.get_by_role("button", name="List again").click()
    expect(log.locator("li").nth(before)).to_be_visible()
    expect(answer).to_contain_text('"action": "accept"')
    looking.check(bob)
    bob.get_by_role("button", name="End session").click()
    expect(bob.get_by_role("heading", name="New session")).to_be_visible()


def test_a_page_whose_session_ended_elsewhere_says_so_where_its_user_looks(bob: Page) -> None:
    bob.get_by_role("button", name="Connect").click()
    tool(bob, "echo").click()
    bob.set_viewport_size(NARROW)
    bob.get_by_role("button", name="Call", exact=True).scroll_into_view_if_needed()
    bob.evaluate(END)
    note = bob.get_by_text("This session has ended")
    expect(note).to_be_in_viewport(ratio=1)
    assert note.evaluate(looking.IN_VIEW)
    looking.check(bob)
    bob.get_by_role("link", name="Begin another one").click()
    expect(bob.get_by_role("heading", name="New session")).to_be_visible()
