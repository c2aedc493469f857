"""The modal decides nothing by accident: focus, keys, early clicks, leaving it, the clock."""

import functools
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect

from tests.browser.alone import Alone, asked
from tests.browser.chatting import (
    Chat,
    approve,
    approve_button,
    decline,
    decline_button,
    focused,
    leave_menu,
    middle,
    press,
    stop_clock,
)
from tests.browser.conftest import NARROW, WIDE, House, SharedModel, Visit
from tests.browser.looking import check, in_view
from tests.scripted_model import calls, text
from tests.waiting import until

pytestmark = pytest.mark.browser

Ask = Callable[..., None]
HELLO: Final = {"text": "hello"}
ASKED: Final = ("echo", HELLO)
# By choice also where there is room.
IN_A_WINDOW: Final = "localStorage.setItem('hitlchat-cards', 'window')"
LOW: Final[tuple[ViewportSize, ...]] = ({"width": 844, "height": 390}, {"width": 390, "height": 480})


@pytest.fixture
def page(page: Page) -> Page:
    page.add_init_script(IN_A_WINDOW)
    return page


@pytest.fixture
def window(alone: Alone) -> Alone:
    alone.page.add_init_script(IN_A_WINDOW)
    return alone


@pytest.fixture
def ask(chat: Chat, model: SharedModel) -> Ask:
    """Let the agent ask for these calls, without waiting until the cards may be answered."""

    def ask(*wanted: tuple[str, dict[str, str]]) -> None:
        model.enqueue(calls(*(wanted or [ASKED])))
        chat.say()
        expect(chat.modal).to_be_visible()
        expect(chat.cards).to_have_count(len(wanted) or 1)

    return ask


def end(chat: Chat) -> None:
    """Leave nothing that waits."""
    chat.stop()
    expect(chat.modal).to_be_hidden()


@pytest.mark.guarantee("SR-40")
def test_focus_is_on_the_heading_decline_comes_first_and_neither_a_key_there_nor_escape_decides(window: Alone) -> None:
    chat, page = window.chat(asked(HELLO)), window.page
    heading = chat.modal.get_by_role("heading", level=2)
    expect(heading).to_be_focused()
    expect(heading).to_have_text("A call needs your answer")
    for _ in range(2):
        for key in ("Enter", "Space", "a", "A", "y"):
            page.keyboard.press(key)
        chat.asked()
    expect(heading).to_be_focused()
    order = []
    for _ in range(8):
        page.keyboard.press("Tab")
        order.append(str(focused(page)).split(":")[0].split("\n")[0])
    stops = [words for words in order if words.startswith(("Stop", "Decline", "Approve", "More", "Decide later"))]
    assert [words.split()[0] for words in stops] == ["Decline", "Approve", "More", "Stop", "Decide"]
    leave_menu(chat.cards.first)
    expect(chat.modal).to_be_visible()
    for _ in range(4):
        page.keyboard.press("Escape")
    expect(chat.modal).to_be_hidden()
    expect(chat.composer).to_be_focused()
    chat.to_cards.click()
    chat.asked()
    assert window.answers == []


@pytest.mark.guarantee("SR-39")
def test_clicks_and_keys_count_only_half_a_second_after_the_card_appeared_and_a_double_click_once(
    window: Alone,
) -> None:
    chat, page = window.chat(), window.page
    stop_clock(page)
    window.tell(asked(HELLO))
    button = approve_button(chat.cards)
    expect(button).to_be_disabled()
    button.click(force=True)
    button.focus()
    page.keyboard.press("Enter")
    # Each press in the pause starts it anew: impatience answers nothing.
    for _ in range(4):
        page.clock.run_for(450)
        button.click(force=True)
    assert window.answers == []
    page.mouse.move(1, 1)
    page.clock.run_for(1200)
    button.click()
    assert window.answers == ["approve"]
    window.tell()
    expect(chat.modal).to_be_hidden()

    # A double click answers one call, and not the next one that moves up.
    cards = asked({"text": "first"}), asked({"text": "second"})
    window.tell(*cards)
    expect(chat.cards).to_have_count(2)
    page.mouse.move(1, 1)
    page.clock.run_for(1200)
    place = middle(approve_button(chat.cards.first))
    page.mouse.click(*place)
    assert window.answers == ["approve"] * 2
    window.tell(cards[1])
    expect(chat.cards).to_have_count(1)
    page.mouse.click(*middle(approve_button(chat.cards.first)))
    assert window.answers == ["approve"] * 2


@pytest.mark.parametrize(
    "size", [WIDE, pytest.param(NARROW, marks=pytest.mark.slow("another width"))], ids=["wide", "narrow"]
)
def test_calls_of_one_turn_share_a_window_are_put_off_and_decided_one_by_one(
    chat: Chat, ask: Ask, model: SharedModel, size: ViewportSize
) -> None:
    chat.page.set_viewport_size(size)
    ask(*(("echo", {"text": word}) for word in ("one", "two", "three")))
    chat.asked(3)
    expect(chat.modal.get_by_role("heading", level=2)).to_have_text("3 calls need your answer")
    expect(chat.cards.get_by_role("heading")).to_have_text(["Say one", "Say two", "Say three"])
    chat.page.keyboard.press("Escape")
    expect(chat.to_cards).to_have_text("3 calls waiting")
    assert in_view(chat.to_cards)
    chat.to_cards.click()
    chat.asked(3)
    decline(chat.cards.nth(1))
    approve(chat.asked(2))
    chat.asked(1)
    chat.page.keyboard.press("Escape")
    chat.to_cards.click()
    model.enqueue(text("Two of three."))
    chat.approve(chat.asked(1))
    chat.said("Two of three.")
    expect(chat.call("succeeded")).to_have_count(2)
    expect(chat.call("declined")).to_have_count(1)
    expect(chat.to_cards).to_be_hidden()
    assert [told.split()[0].strip('"') for told in model.told] == ["one", '{"status":', "three"]


@pytest.mark.slow("another story of the window")
def test_a_reason_reaches_the_model_and_stop_withdraws_also_on_a_low_screen(
    chat: Chat, ask: Ask, model: SharedModel, house: House
) -> None:
    ask()
    card = chat.asked()
    for size in LOW:
        chat.page.set_viewport_size(size)
        for part in (card.get_by_role("heading"), decline_button(card).first, approve_button(card)):
            until(functools.partial(in_view, part), "it is in view")
    chat.page.set_viewport_size(WIDE)
    chat.page.keyboard.press("Escape")
    chat.to_cards.click()
    card = chat.asked()
    card.locator("summary[aria-label='Decline with a reason']").click()
    card.get_by_label("Decline with a reason that").fill("Wrong customer <b>")
    model.enqueue(text("Understood."))
    press(card.get_by_role("button", name="Decline with this reason"))
    chat.said("Understood.")
    line = chat.call("declined")
    line.locator("summary").click()
    expect(line).to_contain_text("“Wrong customer <b>”")
    assert "Wrong customer <b>" in model.told[-1]

    ask()
    end(chat)
    expect(chat.call("withdrawn")).to_have_count(1)
    expect(chat.log.get_by_text("You stopped this run.")).to_be_visible()
    assert [call["status"] for call in house.calls(chat.conversation)] == ["declined", "withdrawn"]
    expect(chat.page.get_by_role("button", name="Stop")).to_have_count(0)


def test_the_time_left_is_shown_and_counts_down_and_at_zero_the_buttons_are_dead(window: Alone) -> None:
    chat, page = window.chat(), window.page
    stop_clock(page)
    window.tell(asked(HELLO))
    left = chat.cards.locator("[data-deadline]")

    def seconds() -> int:
        minutes, _, rest = left.inner_text().partition(":")
        return int(minutes) * 60 + int(rest)

    before = seconds()
    assert 280 <= before <= 300
    page.clock.run_for(3000)
    assert before - seconds() in {2, 3, 4}
    # In one leap, as if the page had slept: the heartbeat of its connection must not find it silent on the way.
    page.clock.fast_forward(310_000)
    expect(decline_button(chat.cards).first).to_be_disabled()
    expect(approve_button(chat.cards)).to_be_disabled()
    expect(chat.modal.get_by_role("button", name="Stop")).to_be_enabled()


@pytest.mark.guarantee("SR-39")
def test_decide_later_leaves_the_answer_in_the_transcript_and_the_composer_as_it_was(window: Alone) -> None:
    chat = window.chat()
    chat.composer.press_sequentially("and after that")
    window.tell(asked(HELLO))
    chat.asked()
    chat.modal.get_by_role("button", name="Decide later").click()
    expect(chat.modal).to_be_hidden()
    expect(chat.composer).to_have_value("and after that")
    expect(chat.composer).to_be_focused()
    expect(window.page).to_have_title(re.compile(r"^\(1\) "))
    chat.to_cards.click()
    chat.approve()
    assert window.answers == ["approve"]
    window.tell()
    expect(chat.composer).to_have_value("and after that")


@pytest.mark.slow("a page that loads for four seconds")
def test_a_page_that_loads_slowly_says_no_more_time_than_is_left(
    chat: Chat, ask: Ask, house: House, chromium: Browser
) -> None:
    def late(route: Route) -> None:
        came = time.monotonic()
        until(lambda: time.monotonic() > came + 4, "the page has waited for its script")
        route.continue_()

    ask()
    # With the clock of the browser itself: how old the page is, no other one says.
    context = chromium.new_context(locale="en-GB")
    context.add_cookies([{"name": n, "value": v, "url": house.server.url} for n, v in house.bob.cookies.items()])
    page = context.new_page()
    page.route(re.compile(r"/js/cards[^/]*\.js"), late)
    page.goto(chat.url)
    left = page.locator("[data-ask] [data-deadline]")
    expect(left).to_have_text(re.compile(r"^[0-5]:\d\d$"))
    looked = datetime.now(UTC)
    minutes, _, rest = str(left.text_content()).partition(":")
    ends = datetime.fromisoformat(str(left.get_attribute("data-deadline")))
    assert int(minutes) * 60 + int(rest) < (ends - looked).total_seconds() + 2
    context.close()
    end(chat)


@pytest.mark.slow("waits ten seconds for an answer")
@pytest.mark.guarantee("gate:truth")
def test_a_call_that_nobody_answers_in_time_goes_away_and_says_so(chat: Chat, ask: Ask, model: SharedModel) -> None:
    ask(("brief", {"text": "quick"}))
    model.enqueue(text("Nobody was there."))
    expect(chat.modal).to_be_hidden()
    line = chat.call("expired")
    expect(line).to_have_count(1)
    line.locator("summary").click()
    expect(line).to_contain_text("Nobody answered in time, and the call did not run.")
    chat.said("Nobody was there.")
    assert "expired" in model.told[-1]


@pytest.mark.slow("another story of the window")
def test_in_a_narrow_german_window_the_heading_is_not_below_the_button_that_stops(
    visit: Visit, house: House, model: SharedModel
) -> None:
    page = visit(house.server, house.bob, viewport=NARROW, locale="de-DE")
    chat = Chat(page, house.server, house.bob.begin("")).open()
    model.enqueue(calls(("echo", {"text": "eins"}), ("echo", {"text": "zwei"})))
    page.get_by_label("Nachricht", exact=True).fill("Los")
    page.get_by_role("button", name="Senden").click()
    chat.asked(2)
    heading = page.get_by_role("heading", name="2 Aufrufe brauchen eine Antwort").bounding_box()
    button = chat.modal.get_by_role("button", name="Anhalten")
    stop = button.bounding_box()
    assert heading
    assert stop
    assert heading["x"] + heading["width"] <= stop["x"]
    button.click()
    expect(chat.modal).to_be_hidden()


@pytest.mark.slow("another story of the window")
def test_in_a_narrow_window_a_long_name_is_whole_in_the_head_of_its_card_and_leaves_the_buttons_as_they_are(
    visit: Visit, house: House, model: SharedModel
) -> None:
    page = visit(house.server, house.bob, viewport=NARROW)
    chat = Chat(page, house.server, house.bob.begin("")).open()
    model.enqueue(calls(("echo", {"text": "one"})), text("Done."))
    chat.say()
    card = chat.asked()
    buttons = [decline_button(card).first, approve_button(card)]
    before = [button.bounding_box() for button in buttons]
    name = card.locator(".ask-meta code")
    for place in (name, card.locator("[data-approve] .does")):
        place.evaluate("(place, longest) => { place.textContent = longest; }", "synchronise_" * 5)
    assert [button.bounding_box() for button in buttons] == before
    expect(buttons[1]).to_have_accessible_name(re.compile("synchronise_"))
    assert name.evaluate("name => name.getBoundingClientRect().right <= innerWidth")
    check(page)
    chat.approve()
    chat.said("Done.")
