"""Second opinion: an administrator turns it on, and its caution comes to an open card, which then needs a tick."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.chatting import Chat, approve, approve_button, look_through, settle
from tests.browser.conftest import SharedModel, Visit
from tests.processes import STEADY, Server, Servers
from tests.scripted_model import Gate, calls, text

pytestmark = pytest.mark.browser

SENTENCE = "The text is another one than the request names."


def turn_on(alice: Page, server: Server) -> None:
    alice.goto(f"{server.url}/models/")
    form = alice.locator("#second-opinion")
    form.get_by_label("Second opinion").select_option("tick")
    looking.check(alice)
    form.get_by_role("button", name="Save").click()
    expect(alice.get_by_role("status")).to_contain_text("A second model reads each call")
    expect(form).to_contain_text("Not asked about any call yet.")


@pytest.mark.slow("a long story of second opinions")
@pytest.mark.timeout(300)
@pytest.mark.guarantee("gate:seen", "gate:no-yes-no-run")
def test_a_caution_comes_to_an_open_card_which_then_needs_its_tick(own: Servers, visit: Visit) -> None:
    model = SharedModel()
    server = own.start(**model.environment | STEADY)
    alice = visit(server, server.sign_in("alice"))
    turn_on(alice, server)

    bob, held = server.sign_in("bob"), Gate()
    model.enqueue(calls(("echo", {"text": "bye"})), text(held, json.dumps({"caution": SENTENCE})), text("Said it."))
    chat = Chat(visit(server, bob), server, bob.begin("Say hello.")).open()
    card = chat.asked(1)
    look_through(card)
    expect(approve_button(card)).to_be_enabled()
    others = [visit(server, bob) for _ in range(2)]
    (waiting,) = bob.wait_for_call(chat.conversation, "waiting", 1)
    for page, path in zip(others, ("", waiting["approvalId"]), strict=True):
        page.goto(f"{server.url}/approvals/{path}")
        expect(page.locator("[data-ask]")).to_contain_text("bye")
    for page in (chat.page, *others):
        expect(page.locator(".second-opinion")).to_have_count(0)
    why = "Not without asking her"
    card.locator("details.because > summary").click()
    card.get_by_label("Decline with a reason that the model will read").fill(why)
    for page in (chat.page, others[1]):
        page.locator("[data-ask]").focus()

    held.open()
    for page in (chat.page, *others):
        expect(page.locator("[data-ask] .second-opinion")).to_contain_text(SENTENCE)
    for page in (chat.page, others[1]):
        expect(page.locator("[data-ask]")).to_be_focused()
    caution = card.locator(".second-opinion")
    expect(caution).to_contain_text(SENTENCE)
    expect(caution).to_contain_text("It may be wrong.")
    expect(card.locator(".ask-foot .second-opinion")).to_have_count(0)
    # It is another card now, and what was typed on the one before is on it.
    expect(card.locator("textarea[name=reason]").first).to_have_value(why)
    expect(card.locator("[data-count]")).to_have_text(str(len(why)))
    look_through(card)
    expect(approve_button(card)).to_be_disabled()
    expect(card.locator(".why-not").first).to_have_text("Tick the box above first.")
    looking.check(chat.page)
    settle(chat.page)
    card.get_by_label("I read the warning above.").check()
    approve(card)
    chat.said("Said it.")

    (call,) = bob.wait_for_call(chat.conversation, "succeeded", 1)
    alice.goto(f"{server.url}/history/{call['id']}")
    expect(alice.get_by_text("A second model cautioned")).to_be_visible()
    alice.goto(f"{server.url}/insights/")
    expect(alice.locator("#second-opinions")).to_contain_text("echo")
    looking.check(alice)
    model.close()
