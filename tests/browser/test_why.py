"""A person asks the model why before they decide, by keyboard, and another one who may decide reads the answer."""

import pytest
from playwright.sync_api import Locator, ViewportSize, expect

from tests.browser import looking
from tests.browser.chatting import Chat, approve, approve_button, decline_button, settle, tab_to
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.tools import ECHO
from tests.processes import Server
from tests.scripted_model import Gate, calls, text

pytestmark = pytest.mark.browser

APPROVER = """
from django.contrib.auth.models import User
from hitlchat.accounts import roles
roles.give(User.objects.get(username="charlie"), roles.Role.APPROVER)
"""
LABEL = "What the model says. It may be wrong, and nothing checked it."


def places(card: Locator) -> list[object]:
    return [button.bounding_box() for button in (approve_button(card), decline_button(card))]


@pytest.mark.slow("a long story of asking why")
@pytest.mark.guarantee("gate:seen", "gate:no-yes-no-run")
@pytest.mark.parametrize("size", [looking.WIDE, looking.NARROW], ids=["wide", "narrow"])
def test_an_answer_comes_in_above_the_buttons_and_moves_none_of_them(
    house: House, server: Server, model: SharedModel, visit: Visit, new_name: str, size: ViewportSize
) -> None:
    tool = new_name.replace("-", "_")
    house.alice.add_tool(tool, code=ECHO, hitlMode="REQUIRED")
    page = visit(server, house.alice)
    page.set_viewport_size(size)
    page.goto(server.url)
    chat = Chat(page, server, house.alice.begin("")).in_a_window()
    gate = Gate()
    answer = text(gate, "You asked me to say one. <b>Nothing</b> else asks for it. " * 12)
    model.enqueue(calls((tool, {"text": "one"})), answer, text("It said one."))
    chat.say()
    card = chat.asked()
    opener = card.locator(".whys > summary")
    opener.focus()
    page.keyboard.press("Enter")
    question = card.get_by_label("Your question; without one it is asked why.")
    tab_to(page, question)
    page.keyboard.type("Why one?")
    ask = card.locator(".whys-body button[type=submit]")
    tab_to(page, ask)
    settle(page)
    page.keyboard.press("Enter")
    expect(card.get_by_text("The model is being asked.")).to_be_visible()
    expect(ask).to_be_focused()
    expect(question).to_have_value("")
    settle(page)
    before = places(card)
    gate.open()
    expect(card.get_by_text(LABEL)).to_be_visible()
    expect(card).not_to_have_attribute("data-early", "")
    assert places(card) == before
    expect(card.locator(".whys b", has_text="Nothing")).to_have_count(0)
    looking.check(page, looking.THOROUGHLY)
    approve(card)
    chat.said("It said one.")
    page.goto(f"{server.url}/history/?tool={tool}")
    page.locator("main a[href*='/history/']", has_text="one").first.click()
    expect(page.get_by_text(LABEL)).to_be_visible()
    looking.check(page)


@pytest.mark.slow("another story of Ask why")
def test_whoever_else_decides_reads_the_answer_by_itself(
    house: House, server: Server, model: SharedModel, visit: Visit, new_name: str
) -> None:
    house.server.home.manage("shell", "-v", "0", "-c", APPROVER)
    charlie = visit(house.server, house.server.sign_in("charlie"))
    tool, alice = new_name.replace("-", "_"), house.alice
    alice.add_tool(tool, code=ECHO, hitlMode="REQUIRED")
    alice._client.put(
        f"/api/tools/{tool}/rules", json={"decidedBy": "approvers"}, headers=alice._headers
    ).raise_for_status()
    chat = Chat(visit(server, alice), server, alice.begin("")).open()
    model.enqueue(calls((tool, {"text": "one"})), text("You asked me to."), text("It said one."))
    chat.say()
    card = chat.asked()
    charlie.goto(f"{server.url}/approvals/")
    charlie.locator("[data-line]", has_text="for alice").get_by_role("link").first.click()
    theirs = charlie.locator("#card-slot [data-ask]")
    settle(charlie)
    theirs.locator(".whys > summary").click()
    expect(theirs.get_by_role("button", name="Ask", exact=True)).to_have_count(0)
    for each in (card.locator(".whys > summary"), card.get_by_role("button", name="Ask", exact=True)):
        each.scroll_into_view_if_needed()
        settle(chat.page)
        each.click()
    expect(card.get_by_text("You asked me to.")).to_be_visible()
    expect(theirs.get_by_text("You asked me to.")).to_be_visible()
    looking.check(charlie)
    approve(card)
    chat.said("It said one.")
