"""Decisions that nobody made: stray keys, impatient clicks, a yes to what was out of view; with real input events."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import GRACE_MS, Chat, approve_button, look_through, middle, rest_hands, settle, stop_clock
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.inbox import Asking, Inbox
from tests.scripted_model import calls, text

pytestmark = [pytest.mark.browser, pytest.mark.guarantee("gate:seen")]

Ask = Callable[..., None]
# Of taps near each other, only one that comes so much later is an act of its own.
TAPS_MS = 1600
# The product looks this often whether something has moved.
LOOK_MS = 101
LONG = {f"field_{n}": f"value {n}" for n in range(30)}


@pytest.fixture
def ask(chat: Chat, model: SharedModel) -> Ask:
    def ask(*wanted: tuple[str, dict[str, Any]]) -> None:
        model.enqueue(calls(*wanted))
        chat.say()
        expect(chat.modal).to_be_visible()
        expect(chat.cards).to_have_count(len(wanted))

    return ask


@pytest.fixture
def waiting(house: House, model: SharedModel) -> Iterator[Asking]:
    asking = Asking(house, model)
    yield asking
    asking.end()


@pytest.fixture
def inbox(page: Page, house: House) -> Inbox:
    return Inbox(page, house.server.url)


def stop(chat: Chat) -> None:
    chat.stop()
    expect(chat.modal).to_be_hidden()


# -- The inbox's keys --------------------------------------------------------------------------------------------------


def test_stray_keys_answer_nothing_that_nobody_chose(inbox: Inbox, house: House, waiting: Asking) -> None:
    waiting(("echo", {"text": "one"}), ("echo", {"text": "two"}), ("note", {"note": "three"}))
    inbox.open()
    inbox.shows("Say one")
    inbox.page.keyboard.type("banana")
    settle(inbox.page)
    inbox.page.keyboard.type("banana")
    expect(inbox.lines).to_have_count(3)
    assert len(house.bob.pending()) == 3


def test_a_key_answers_the_chosen_line_alone_however_often_it_is_pressed(
    inbox: Inbox, house: House, waiting: Asking
) -> None:
    waiting(("echo", {"text": "one"}), ("echo", {"text": "two"}), ("note", {"note": "three"}))
    inbox.open()
    expect(inbox.lines).to_have_count(3)
    inbox.page.keyboard.press("j")
    inbox.shows("Say one")
    rest_hands(inbox.page)
    for _ in range(9):
        inbox.page.keyboard.press("a")
        inbox.page.clock.run_for(GRACE_MS // 2)
    expect(inbox.lines).to_have_count(2)
    assert len(house.bob.pending()) == 2


# -- What moves --------------------------------------------------------------------------------------------------------


def test_a_card_that_moves_away_from_the_pointer_keeps_its_look_and_at_the_pointer_no_press_counts(
    chat: Chat, ask: Ask, house: House
) -> None:
    page = chat.page
    ask(("echo", {"text": "one"}), ("echo", {"text": "two"}))
    look_through(chat.cards.first)
    settle(page)
    first, second = chat.cards.all()
    first.locator(".ask-head").hover()
    settle(page)
    stop_clock(page)
    settle(page)
    # As what opens in it would.
    first.evaluate("card => card.style.paddingBlockStart = '30px'")
    page.clock.run_for(LOOK_MS)
    for card in (first, second):
        expect(card).to_have_attribute("data-fresh", "")
        expect(card).not_to_have_attribute("data-early", "")
    page.mouse.move(*middle(approve_button(first)))
    expect(first).to_have_attribute("data-early", "")
    expect(approve_button(first)).to_have_attribute("aria-disabled", "true")
    expect(second).not_to_have_attribute("data-early", "")
    page.mouse.down()
    page.mouse.up()
    page.clock.run_for(GRACE_MS)
    expect(first).not_to_have_attribute("data-early", "")
    assert len(house.bob.pending()) == 2
    page.clock.resume()
    stop(chat)


# -- What has not been in view -----------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_approve_says_what_was_not_in_view_and_leads_there(chat: Chat, ask: Ask, model: SharedModel) -> None:
    ask(("many", LONG))
    card = chat.asked()
    button = approve_button(card)
    expect(card.locator(".why-not").last).to_contain_text("Scroll to see")
    expect(button).to_have_attribute("aria-disabled", "true")
    button.click(force=True)
    expect(chat.cards).to_have_count(1)
    first = chat.page.evaluate("document.activeElement.matches('dd, h3, .ask-why, .effect')")
    assert first, "the first part that was not in view has the focus"
    look_through(card)
    expect(card.locator(".why-not").last).to_be_empty()
    model.enqueue(text("Done."))
    chat.approve(card)
    chat.said("Done.")


def test_by_keyboard_alone_each_press_leads_to_what_is_left_and_the_last_one_approves(
    chat: Chat, ask: Ask, model: SharedModel
) -> None:
    ask(("many", LONG))
    chat.asked()
    model.enqueue(text("Done."))
    for _ in range(40):
        if not chat.modal.is_visible():
            break
        # It may be gone by now.
        chat.cards.evaluate_all("cards => cards[0]?.querySelector('[data-approve]').focus()")
        chat.page.keyboard.press("Enter")
        settle(chat.page)
    chat.said("Done.")


def test_a_card_out_of_view_is_not_approved_by_a_script_of_keys(chat: Chat, ask: Ask, house: House) -> None:
    ask(("many", LONG))
    card = chat.asked()
    card.locator("form:has([data-approve])").evaluate("form => form.requestSubmit()")
    expect(chat.cards).to_have_count(1)
    assert len(house.bob.pending()) == 1
    stop(chat)


def test_without_its_script_a_page_approves_nothing(visit: Visit, house: House, waiting: Asking) -> None:
    waiting(("echo", {"text": "one"}))
    page = visit(house.server, house.bob, java_script_enabled=False)
    page.goto(f"{house.server.url}/approvals/{house.bob.pending()[0]['id']}")
    expect(approve_button(page.locator("[data-ask]"))).to_be_disabled()
    assert "Approving needs JavaScript" in (page.locator("[data-ask] noscript").text_content() or "")


# -- Impatient presses -------------------------------------------------------------------------------------------------


def test_a_press_that_began_in_the_pause_does_not_count_when_it_ends_after_it(chat: Chat, ask: Ask) -> None:
    page = chat.page
    ask(("echo", {"text": "one"}))
    chat.asked()
    stop_clock(page)
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    page.mouse.move(*middle(approve_button(chat.cards.first)))
    page.mouse.down()
    page.clock.run_for(3 * GRACE_MS)
    page.mouse.up()
    page.clock.run_for(GRACE_MS)
    expect(chat.cards).to_have_count(1)
    stop(chat)


def test_a_held_key_that_was_down_in_the_pause_approves_nothing(chat: Chat, ask: Ask) -> None:
    page = chat.page
    ask(("echo", {"text": "one"}))
    approve_button(chat.asked()).focus()
    stop_clock(page)
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    for _ in range(60):
        # Down again without up: the browser's own repetition.
        page.keyboard.down("Enter")
        page.clock.run_for(30)
    page.clock.run_for(GRACE_MS)
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    expect(chat.cards).to_have_count(1)
    stop(chat)


def test_a_finger_is_held_to_the_same_pause(visit: Visit, house: House, model: SharedModel) -> None:
    page = visit(house.server, house.bob, has_touch=True)
    conversation = house.bob.post("/api/conversations", {"title": "By touch"}).json()["id"]
    chat = Chat(page, house.server, conversation).open()
    model.enqueue(calls(("echo", {"text": "one"})))
    chat.say()
    chat.asked()
    stop_clock(page)
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    x, y = middle(approve_button(chat.cards.first))
    for _ in range(12):
        page.touchscreen.tap(x, y)
        page.clock.run_for(450)
    expect(chat.cards).to_have_count(1)
    model.enqueue(text("Done."))
    page.clock.run_for(TAPS_MS)
    page.touchscreen.tap(x, y)
    chat.said("Done.")
