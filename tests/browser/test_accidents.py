"""Decisions that nobody made: stray keys, impatient clicks, a yes to what was out of view; with real input events."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.browser.alone import Alone, asked
from tests.browser.chatting import (
    GRACE_MS,
    approve,
    approve_button,
    look_through,
    middle,
    rest_hands,
    settle,
    stop_clock,
)
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.inbox import Asking, Inbox

pytestmark = [pytest.mark.browser, pytest.mark.guarantee("gate:seen")]

# The product looks this often whether something has moved.
LOOK_MS = 101
LOW: Final[ViewportSize] = {"width": 1280, "height": 300}
LONG: Final = {f"field_{n}": f"value {n}" for n in range(30)}


@pytest.fixture
def waiting(house: House, model: SharedModel) -> Iterator[Asking]:
    asking = Asking(house, model)
    yield asking
    asking.end()


@pytest.fixture
def inbox(page: Page, house: House) -> Inbox:
    return Inbox(page, house.server.url)


# -- The inbox's keys --------------------------------------------------------------------------------------------------


def test_stray_keys_answer_nothing_and_a_key_the_chosen_line_alone_however_often_it_is_pressed(
    inbox: Inbox, house: House, waiting: Asking
) -> None:
    waiting(("echo", {"text": "one"}), ("echo", {"text": "two"}), ("note", {"note": "three"}))
    keys = inbox.open().page.keyboard
    inbox.shows("Say one")
    keys.type("banana")
    settle(inbox.page)
    keys.type("banana")
    expect(inbox.lines).to_have_count(3)
    assert len(house.bob.pending()) == 3
    keys.press("j")
    inbox.shows("Say one")
    rest_hands(inbox.page)
    for _ in range(9):
        keys.press("a")
        inbox.page.clock.run_for(GRACE_MS // 2)
    expect(inbox.lines).to_have_count(2)
    assert len(house.bob.pending()) == 2


# -- What moves --------------------------------------------------------------------------------------------------------


def test_a_card_that_moves_away_from_the_pointer_keeps_its_look_and_at_the_pointer_no_press_counts(
    alone: Alone,
) -> None:
    page, chat = alone.page, alone.chat(asked({"text": "one"}), asked({"text": "two"}))
    look_through(chat.asked(2))
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
    assert alone.answers == []


# -- What has not been in view -----------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_approve_says_what_was_not_in_view_leads_there_and_counts_for_no_script_of_keys(alone: Alone) -> None:
    alone.page.set_viewport_size(LOW)
    card = alone.approval(asked(LONG))
    settle(alone.page)
    button = approve_button(card)
    expect(card.locator(".why-not").last).to_contain_text("Scroll to see")
    expect(button).to_have_attribute("aria-disabled", "true")
    card.locator("form:has([data-approve])").evaluate("form => form.requestSubmit()")
    button.scroll_into_view_if_needed()
    settle(alone.page)
    button.click(force=True)
    first = alone.page.evaluate("document.activeElement.matches('dd, h3, .ask-why, .effect')")
    assert first, "the first part that was not in view has the focus"
    assert alone.answers == []
    look_through(card)
    expect(card.locator(".why-not").last).to_be_empty()
    approve(card)
    assert alone.answers == ["approve"]


def test_by_keyboard_alone_each_press_leads_to_what_is_left_and_the_last_one_approves(alone: Alone) -> None:
    alone.page.set_viewport_size(LOW)
    card = alone.approval(asked(LONG))
    for _ in range(40):
        settle(alone.page)
        unseen = card.locator(".why-not").last.inner_text()
        approve_button(card).focus()
        alone.page.keyboard.press("Enter")
        if not unseen:
            break
        assert alone.answers == []
    assert alone.answers == ["approve"]


def test_without_its_script_a_page_approves_nothing(visit: Visit) -> None:
    card = Alone(visit(Alone, java_script_enabled=False)).approval(asked({"text": "one"}))
    expect(approve_button(card)).to_be_disabled()
    assert "Approving needs JavaScript" in (card.locator("noscript").text_content() or "")


# -- Impatient presses -------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(alone: Alone) -> Locator:
    """A card that came just now, of which all is in view; time goes on only when the test says so."""
    card = alone.approval(asked({"text": "one"}))
    settle(alone.page)
    look_through(card)
    stop_clock(alone.page)
    alone.page.evaluate("window.dispatchEvent(new Event('focus'))")
    return card


@pytest.mark.guarantee("SR-39")
def test_a_press_that_began_in_the_pause_does_not_count_when_it_ends_after_it(alone: Alone, fresh: Locator) -> None:
    page = alone.page
    page.mouse.move(*middle(approve_button(fresh)))
    page.mouse.down()
    page.clock.run_for(3 * GRACE_MS)
    page.mouse.up()
    page.clock.run_for(GRACE_MS)
    assert alone.answers == []


@pytest.mark.guarantee("SR-39")
def test_a_held_key_that_was_down_in_the_pause_approves_nothing(alone: Alone, fresh: Locator) -> None:
    page = alone.page
    approve_button(fresh).focus()
    for _ in range(60):
        # Down again without up: the browser's own repetition.
        page.keyboard.down("Enter")
        page.clock.run_for(30)
    page.clock.run_for(GRACE_MS)
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    assert alone.answers == []
