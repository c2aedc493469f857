"""Decisions that nobody made: stray keys, impatient clicks, a yes to what was out of view; with real input events."""

import re
from dataclasses import replace
from typing import Final

import pytest
from playwright.sync_api import ViewportSize, expect

from hitlchat.gate.why import Whys
from tests.browser.alone import Alone, asked
from tests.browser.chatting import (
    GRACE_MS,
    approve,
    approve_button,
    decline_button,
    look_through,
    middle,
    rest_hands,
    settle,
    stop_clock,
)
from tests.browser.conftest import Visit

pytestmark = [pytest.mark.browser, pytest.mark.guarantee("gate:seen")]

# The product looks this often whether something has moved.
LOOK_MS = 101
# The pause of each card begins as if it came just now.
CAME_AGAIN: Final = "window.dispatchEvent(new Event('focus'))"
LOW: Final[ViewportSize] = {"width": 1280, "height": 300}
LONG: Final = {f"field_{n}": f"value {n}" for n in range(30)}


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


def test_within_the_pause_the_model_can_be_asked_why_and_nothing_can_be_approved(alone: Alone) -> None:
    card = alone.approval(replace(asked({"text": "one"}), whys=Whys((), may_ask=True, left=3)))
    look_through(card)
    stop_clock(alone.page)
    alone.page.evaluate(CAME_AGAIN)
    card.locator(".whys > summary").click()
    with alone.page.expect_request("**/why") as request:
        card.get_by_role("button", name="Ask", exact=True).click()
    assert request.value.method == "POST"
    expect(card).to_have_attribute("data-fresh", "")
    approve_button(card).click(force=True)
    assert alone.answers == []


# -- What has not been in view -----------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_approve_says_what_was_not_in_view_leads_there_by_pointer_and_by_keyboard_and_counts_for_no_script(
    alone: Alone,
) -> None:
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

    # By keyboard alone each press leads to what is left, and the last one approves.
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


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_card_with_a_warning_takes_a_yes_once_it_is_ticked_and_its_buttons_say_what_they_are_about(
    alone: Alone,
) -> None:
    chat = alone.chat(asked({"text": "a\u202eb"}, risk=1), asked({"text": "plain"}, risk=1))
    look_through(chat.asked(2))
    warned, plain = chat.cards.all()
    button = approve_button(warned)
    expect(button).to_be_disabled()
    expect(warned.locator(".why-not").last).to_have_text("Tick the box above first.")
    expect(button).to_have_accessible_description(re.compile("direction override"))
    expect(approve_button(plain)).to_have_accessible_name(re.compile("^Approve ?: run .+plain"))
    expect(decline_button(plain).first).to_have_accessible_name(re.compile("^Decline ?: don.t run .+plain"))
    warned.get_by_label("I read the warning above.").check()
    approve(warned)
    approve(plain)
    assert alone.answers == ["approve", "approve"]


def test_without_its_script_a_page_approves_nothing(visit: Visit) -> None:
    card = Alone(visit(Alone, java_script_enabled=False)).approval(asked({"text": "one"}))
    expect(approve_button(card)).to_be_disabled()
    assert "Approving needs JavaScript" in (card.locator("noscript").text_content() or "")


# -- Impatient presses -------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("SR-39")
def test_neither_a_press_nor_a_held_key_that_began_in_the_pause_counts_after_it(alone: Alone) -> None:
    page, card = alone.page, alone.approval(asked({"text": "one"}))
    settle(page)
    look_through(card)
    stop_clock(page)
    page.evaluate(CAME_AGAIN)
    page.mouse.move(*middle(approve_button(card)))
    page.mouse.down()
    page.clock.run_for(3 * GRACE_MS)
    page.mouse.up()
    page.clock.run_for(GRACE_MS)
    assert alone.answers == []

    page.mouse.move(1, 1)
    rest_hands(page)
    page.evaluate(CAME_AGAIN)
    approve_button(card).focus()
    for _ in range(60):
        # Down again without up: the browser's own repetition.
        page.keyboard.down("Enter")
        page.clock.run_for(30)
    page.clock.run_for(GRACE_MS)
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    assert alone.answers == []
