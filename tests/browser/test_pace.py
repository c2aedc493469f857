"""After quick yeses a card asks for the one value that matters, by pointer and by keyboard."""

from dataclasses import replace
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, expect

from hitlchat.gate import pace
from tests.browser.alone import Alone, asked
from tests.browser.chatting import Chat, approve, approve_button, decline_button, look_through, settle
from tests.browser.conftest import SharedModel, Visit
from tests.browser.looking import check
from tests.processes import STEADY, Servers
from tests.scripted_model import calls, text
from tests.waiting import until

pytestmark = pytest.mark.browser

WHY: Final = "Your last 3 approvals came faster than their cards can be read, so this one asks for a value."
QUICK: Final = "from hitlchat.gate.models import Decision; Decision.objects.update(hurried=True)"
MISSING: Final = "Fill in the value above first."


def paced(alone: Alone, arguments: dict[str, Any], risk: int = 3) -> Locator:
    shown = asked(arguments, tool="pay", risk=risk)
    matter = pace.matter({"arguments": arguments, "tool": {"name": "pay"}})
    return alone.chat(replace(shown, matter=matter)).asked()


@pytest.mark.guarantee("SR-39")
def test_approve_works_once_the_value_is_filled_in_and_the_key_for_it_leads_there(alone: Alone) -> None:
    card = paced(alone, {"to": "Ann", "amount": 129})
    field = card.get_by_label("Type the value of to:")
    expect(card.locator(".matter")).to_contain_text(WHY)
    expect(field).to_have_accessible_description(WHY)
    look_through(card)
    expect(approve_button(card)).to_be_disabled()
    expect(card.locator(".why-not")).to_have_text(MISSING)
    expect(decline_button(card)).to_be_enabled()
    card.focus()
    alone.page.keyboard.press("ControlOrMeta+Enter")
    expect(field).to_be_focused()
    # What is typed goes into it, and Enter there is no yes.
    alone.page.keyboard.type("Ann")
    alone.page.keyboard.press("Enter")
    expect(field).to_have_value("Ann")
    expect(approve_button(card)).to_be_enabled()
    assert alone.answers == []
    check(alone.page)
    field.fill("")
    expect(approve_button(card)).to_be_disabled()
    field.fill("Ann")
    approve(card)
    assert [(sent["verdict"], sent["typed"]) for sent in alone.sent if "verdict" in sent] == [("approve", "Ann")]


def test_a_flag_is_chosen_and_besides_a_box_is_ticked_where_it_has_to_be(alone: Alone) -> None:
    card = paced(alone, {"force": True}, risk=5)
    expect(card.locator(".why-not")).to_have_text("Tick the box above first.")
    card.locator("[data-reviewed]").check()
    expect(card.locator(".why-not")).to_have_text(MISSING)
    card.get_by_label("Choose the value of force:").select_option("true")
    look_through(card)
    expect(approve_button(card)).to_be_enabled()
    check(alone.page)


def test_three_quick_yeses_later_a_call_runs_only_with_its_value(own: Servers, visit: Visit) -> None:
    model = SharedModel()
    server = own.start(**model.environment | STEADY | {"HITL_QUICK_YESES": "3"})
    bob = server.sign_in("bob")
    model.enqueue(calls(*(("echo", {"text": f"number {n}"}) for n in range(3)), ("wipe", {"note": "the last"})))
    conversation = bob.begin("Do it.")
    calls_of_it = bob.wait_for_call(conversation, "waiting", 4)
    # Before a page shows them, so that none of these is a quick one by itself.
    for call in calls_of_it[:3]:
        bob.post(f"/api/approvals/{call['approvalId']}/approve").raise_for_status()
    bob.wait_for_call(conversation, "succeeded", 3)
    page, frames = visit(server, bob), list[str]()
    page.on("websocket", lambda socket: socket.on("framereceived", lambda text: frames.append(str(text))))
    chat = Chat(page, server, conversation).open()
    card = chat.asked(1)
    # Once connected, the page gets its cards anew: after those yeses its own would ask for the value from the start.
    until(lambda: page.title() and any('id="asks"' in each for each in frames), "the page has its cards")
    server.home.manage("shell", "-v", "0", "-c", QUICK)
    # The card that was there before them is another one by now.
    card.locator("[data-reviewed]").check()
    approve(card)
    expect(card.locator(".matter")).to_contain_text(WHY)
    field = card.get_by_label("Type the value of note:")
    expect(field).to_be_focused()
    settle(chat.page)
    card.locator("[data-reviewed]").check()
    field.fill("the first")
    approve(card)
    expect(card.get_by_role("alert")).to_have_text("This is not the value on the card. Look at it again.")
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    check(chat.page)
    field.fill("the last")
    model.enqueue(text("All of it is done."))
    approve(card)
    chat.said("All of it is done.")
    model.close()
