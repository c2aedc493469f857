"""The model asks the person: the form in the chat, in the inbox and on its own page, and what is left of it after."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looking
from tests.browser.chatting import Chat, look_through, press, settle
from tests.browser.conftest import House, SharedModel
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

FIELDS: list[dict[str, Any]] = [
    {"name": "colour", "label": "Which colour", "kind": "choice", "choices": ["red", "b\u202elue"]},
    {"name": "litres", "label": "How much", "kind": "number"},
    {"name": "why", "label": "Why", "kind": "text", "required": False},
    {"name": "gift", "label": "Is it a gift?", "kind": "yes_no", "required": False},
]
QUESTION = ("ask_user", {"question": "What shall I paint?\nTell me all of it.", "fields": FIELDS})
SECRET = ("ask_user", {"question": "What is your password?"})


def reply(card: Locator) -> None:
    """Look at all of the question, and click Answer."""
    button = card.get_by_role("button", name=re.compile("^Answer The agent asks"))
    look_through(card, button)
    press(button)


def test_a_question_is_answered_in_the_chat_by_its_form_and_by_no_key(
    page: Page, chat: Chat, model: SharedModel
) -> None:
    model.enqueue(calls(QUESTION), text("Done."))
    chat.say()
    card = chat.asked()
    expect(card.get_by_role("heading", name="The agent asks")).to_be_visible()
    expect(card.locator(".suspect-note").first).to_be_visible()
    expect(card.locator(".risk")).to_have_count(0)
    looking.check(page)
    settle(page)

    card.focus()
    page.keyboard.press("Control+Enter")
    expect(card.get_by_role("radio", name="red")).to_be_focused()
    card.get_by_label("Why").focus()
    page.keyboard.type("a aa")
    card.get_by_label("How much").fill("much")
    reply(card)
    expect(card.get_by_role("alert")).to_have_text("Not sent: 2 fields are not valid.")
    expect(card.get_by_text("Give a number.")).to_be_visible()
    expect(card.get_by_label("Why")).to_have_value("a aa")
    settle(page)
    looking.check(page)

    card.get_by_role("radio", name="red").check()
    card.get_by_label("How much").fill("2.5")
    reply(card)
    chat.said("Done.")
    line = chat.call("succeeded")
    expect(line.locator("[data-status]")).to_have_text("answered")
    expect(line.locator(".verdict")).to_have_text("Answered by bob: “Which colour: red, How much: 2.5, Why: a aa”")
    line.locator("summary").click()
    looking.check(page)


@pytest.mark.slow("another story of questions")
def test_it_is_answered_in_the_inbox_and_declined_on_its_own_page(page: Page, house: House, model: SharedModel) -> None:
    bob = house.bob
    model.enqueue(calls(QUESTION, SECRET), text("Done."))
    conversation = bob.begin("Paint it")
    bob.wait_for_call(conversation, "waiting", 2)
    page.goto(f"{house.server.url}/approvals/")
    page.locator("#waiting").get_by_role("link", name="What shall I paint?").click()
    card = page.locator("[data-ask]")
    settle(page)
    looking.check(page)
    card.get_by_role("radio", name="red").check()
    card.get_by_label("How much").fill("3")
    reply(card)
    expect(page.locator("#card-slot").get_by_text("answered", exact=True)).to_be_visible()

    (left,) = bob.pending()
    page.goto(f"{house.server.url}/approvals/{left['id']}")
    expect(page.get_by_text("Never give passwords or keys here")).to_be_visible()
    settle(page)
    looking.check(page)
    press(page.get_by_role("button", name="Decline The agent asks"))
    expect(page.locator(".decided", has_text="Declined by bob")).to_be_visible()
    bob.wait_for_answer(conversation, "Done.")
