"""Presses and letters that are no answer, on every surface on which a card stands; with real mouse, fingers and keys.

Each page stands for many rows: its clock goes on only when the test says so, and what would be sent is noted. Most are
pages without a server: what a press counts for, their scripts decide.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.alone import NOTE_ANSWERS, Alone, asked
from tests.browser.chatting import (
    GRACE_MS,
    Chat,
    approve_button,
    decline_button,
    look_through,
    middle,
    settle,
    stop_clock,
)
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.inbox import Inbox
from tests.scripted_model import calls, text
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.guarantee("gate:seen"), pytest.mark.timeout(300)]

INTERVALS: Final = (120, 450, 520, 700, 1400)
# The tremor of a hand, in px.
JITTER: Final = ((0, 0), (12, 0), (-12, 7), (5, -12), (-8, 12), (0, -9))
PAUSE_MS: Final = 600
TAPS_MS: Final = 1600
CAME_AGAIN: Final = "window.dispatchEvent(new Event('focus'))"
SURFACES: Final = ("its own page", "transcript", "window", "inbox", "studio")
SERVED: Final = SURFACES[3:]
each_surface = pytest.mark.parametrize(
    "surface", [SURFACES[0], *(pytest.param(name, marks=pytest.mark.slow("another surface")) for name in SURFACES[1:])]
)
TYPED: Final = ("and thanks", "are you sure", "d'accord", "also pay", "a e r area", "yes please, do it?")


@dataclass(frozen=True)
class Asked:
    """A card that waits on some page, on which time goes on only when the test says so."""

    page: Page
    card: Locator

    @property
    def answers(self) -> list[str]:
        return list(self.page.evaluate("window.answers"))

    def come_again(self) -> None:
        """Have the pause of the card begin as if it came just now."""
        self.page.evaluate(CAME_AGAIN)

    def wait(self, ms: int) -> None:
        self.page.clock.run_for(ms)


Ask = Callable[[str], Asked]


@pytest.fixture
def ask(request: pytest.FixtureRequest, visit: Visit) -> Ask:
    def ask(surface: str) -> Asked:
        page, card = request.getfixturevalue("served")(surface) if surface in SERVED else _alone(surface)
        look_through(card)
        settle(page)
        stop_clock(page)
        return Asked(page, card)

    def _alone(surface: str) -> tuple[Page, Locator]:
        alone = Alone(visit(Alone, has_touch=True))
        if surface == "its own page":
            return alone.page, alone.approval(asked({"text": "one"}))
        if surface == "window":
            alone.page.add_init_script("localStorage.setItem('hitlchat-cards', 'window')")
        return alone.page, alone.chat(asked({"text": "one"})).asked()

    return ask


@pytest.fixture
def served(visit: Visit, house: House, model: SharedModel) -> Iterator[Callable[[str], tuple[Page, Locator]]]:
    """Show a card on a page that is put together by its server."""

    def show(surface: str) -> tuple[Page, Locator]:
        page = visit(house.server, house.alice if surface == "studio" else house.bob, has_touch=True)
        page.add_init_script(NOTE_ANSWERS)
        if surface == "studio":
            page.goto(f"{house.server.url}/studio/tools/echo")
            page.get_by_role("button", name="Run test").click()
            return page, page.locator("[data-ask]")
        model.enqueue(calls(("echo", {"text": "one"})), text("Over."))
        house.bob.begin("Do it.")
        until(lambda: bool(house.bob.pending()), "the call waits")
        inbox = Inbox(page, house.server.url).open()
        inbox.line("Say").get_by_role("link").first.click()
        return page, inbox.shows("Say one")

    yield show
    for person in (house.alice, house.bob):
        for left in person.pending():
            person.post(f"/api/approvals/{left['id']}/reject", {})


def places(card: Locator) -> dict[str, tuple[float, float]]:
    found = {}
    for name, button in (("yes", approve_button(card)), ("no", decline_button(card).first)):
        button.scroll_into_view_if_needed()
        found[name] = middle(button)
        box = button.bounding_box()
        assert box
        found[f"edge of {name}"] = (box["x"] + 4, box["y"] + 2)
    return found


@each_surface
def test_impatient_presses_answer_nothing_however_slow_they_are(surface: str, ask: Ask) -> None:
    shown = ask(surface)
    page = shown.page
    got_through = []
    for place, (x, y) in places(shown.card).items():
        is_thorough = surface == SURFACES[0] and not place.startswith("edge")
        for every in INTERVALS if is_thorough else INTERVALS[1::3]:
            for begin in ("before the card", "after it", "by finger"):
                if begin == "by finger" and place.startswith("edge"):
                    continue
                press = page.touchscreen.tap if begin == "by finger" else page.mouse.click
                page.mouse.move(x, y)
                shown.come_again()
                if begin == "after it":
                    shown.wait(PAUSE_MS)
                for dx, dy in JITTER[: 6 if every < 1000 else 3]:
                    press(x + dx, y + dy)
                    shown.wait(every)
                if answers := shown.answers:
                    got_through.append((place, every, begin, answers))
                    page.evaluate("window.answers = []")
                # A click beside a button may have opened what stands there.
                page.keyboard.press("Escape")
    assert got_through == []


@each_surface
def test_a_press_counts_once_the_pointer_has_come_to_the_button_anew_and_the_card_says_so(
    surface: str, ask: Ask
) -> None:
    shown = ask(surface)
    x, y = places(shown.card)["no"]
    shown.page.mouse.move(x, y)
    shown.come_again()
    shown.wait(PAUSE_MS)
    shown.page.mouse.click(x, y)
    hint = shown.card.get_by_text("Move the pointer away from the button and back, then press.")
    expect(hint).to_be_visible()
    assert shown.answers == []
    shown.page.mouse.move(1, 1)
    # What it says may move the buttons, which are to stand still again.
    anew = places(shown.card)["no"]
    shown.wait(2 * PAUSE_MS)
    shown.page.mouse.click(*anew)
    assert shown.answers == ["decline"]


def test_a_tap_counts_once_nothing_near_was_tapped_for_a_moment(ask: Ask) -> None:
    shown = ask("transcript")
    shown.come_again()
    for _ in range(2):
        shown.page.touchscreen.tap(*places(shown.card)["yes"])
        shown.wait(700)
    expect(shown.card.get_by_text("Wait two seconds, then tap once.")).to_be_visible()
    assert shown.answers == []
    shown.wait(TAPS_MS)
    shown.page.touchscreen.tap(*places(shown.card)["yes"])
    assert shown.answers == ["approve"]


def starts(surface: str, shown: Asked) -> dict[str, Callable[[], None]]:
    """What somebody did last before they type."""
    page, card = shown.page, shown.card
    title = card.locator("h3").first

    def click_in_the_pause() -> None:
        shown.come_again()
        title.click()

    def open_and_leave_more() -> None:
        card.get_by_text("More", exact=True).click()
        if surface != "window":
            page.keyboard.press("Escape")
        card.locator("details.menu.end").evaluate("menu => menu.open = false")

    def press_too_early() -> None:
        shown.come_again()
        for _ in range(2):
            page.mouse.click(*places(card)["no"])
            shown.wait(300)

    return {
        "a click in the pause": click_in_the_pause,
        "a selection": title.dblclick,
        "More and Escape": open_and_leave_more,
        "a press too early": press_too_early,
        "focus on the card": card.focus,
        "focus on Approve": approve_button(card).focus,
        "focus on Decline": decline_button(card).first.focus,
    }


@each_surface
def test_what_is_typed_answers_nothing_wherever_the_focus_is(surface: str, ask: Ask) -> None:
    shown = ask(surface)
    got_through = []
    for words, (name, start) in zip(cycle(TYPED), starts(surface, shown).items(), strict=False):
        start()
        shown.wait(700)
        for letter in words:
            shown.page.keyboard.press(letter)
            shown.wait(130)
        shown.wait(1200)
        if answers := shown.answers:
            got_through.append((name, words, answers))
            shown.page.evaluate("window.answers = []")
        if surface != "window":
            # It would put the window off; elsewhere it closes what a question mark opened.
            shown.page.keyboard.press("Escape")
    assert got_through == []


def test_what_is_typed_outside_of_fields_in_the_chat_goes_into_the_message(ask: Ask) -> None:
    shown = ask("transcript")
    composer = shown.page.get_by_label("Message")
    for focus in (shown.card, approve_button(shown.card), shown.page.get_by_role("region", name="Transcript")):
        composer.fill("")
        focus.focus()
        shown.page.keyboard.type("and thanks a lot")
        expect(composer).to_be_focused()
        expect(composer).to_have_value("and thanks a lot")
    shown.page.keyboard.press("Control+a")
    expect(composer).to_be_focused()


@pytest.mark.parametrize(
    "surface,key,verdict",
    [
        ("transcript", "Control+Enter", "approve"),
        ("transcript", "Control+Backspace", "decline"),
        pytest.param("transcript", "Meta+Enter", "approve", marks=pytest.mark.slow("the same of another system")),
        pytest.param("window", "Control+Enter", "approve", marks=pytest.mark.slow("another surface")),
    ],
)
def test_a_chord_answers_the_card_that_has_the_focus(surface: str, key: str, verdict: str, ask: Ask) -> None:
    shown = ask(surface)
    keys = shown.page.keyboard
    shown.page.get_by_role("heading", level=2).last.focus()
    keys.press(key)
    shown.card.focus()
    shown.come_again()
    keys.press(key)
    shown.wait(PAUSE_MS)
    keys.press("x")
    shown.card.focus()
    shown.wait(PAUSE_MS)
    keys.press(key)
    assert shown.answers == [], "not on the card, within its pause, or as part of typing"
    shown.wait(1100)
    keys.press(key)
    assert shown.answers == [verdict]


@pytest.mark.parametrize("key", ["Enter", pytest.param("Space", marks=pytest.mark.slow("another key"))])
def test_a_key_on_a_button_counts_a_second_after_the_last_letter_and_the_card_says_so(key: str, ask: Ask) -> None:
    shown = ask("its own page")
    button = approve_button(shown.card)
    button.focus()
    shown.page.keyboard.press("x")
    shown.wait(900)
    shown.page.keyboard.press(key)
    assert shown.answers == []
    expect(shown.card.get_by_text("You typed a moment ago. Wait a second, then press the key again.")).to_be_visible()
    shown.wait(1100)
    shown.page.keyboard.press(key)
    assert shown.answers == ["approve"]


def test_a_letter_of_the_inbox_counts_a_second_after_the_last_one_and_the_card_says_so(ask: Ask) -> None:
    shown = ask("inbox")
    shown.page.keyboard.press("q")
    shown.wait(900)
    shown.page.keyboard.press("a")
    shown.wait(1100)
    assert shown.answers == []
    expect(shown.card.get_by_text("You typed a moment ago. Wait a second, then press the key again.")).to_be_visible()
    shown.page.keyboard.press("a")
    shown.wait(GRACE_MS)
    assert shown.answers == ["approve"]


def test_turn_after_turn_only_the_press_that_came_to_its_button_answers(
    chat: Chat, house: House, model: SharedModel
) -> None:
    page = chat.page
    page.add_init_script(NOTE_ANSWERS)
    model.enqueue(calls(("echo", {"text": "one"})), calls(("echo", {"text": "two"})))
    chat.open().say()
    shown = Asked(page, chat.asked())
    stop_clock(page)
    x, y = places(shown.card)["yes"]
    page.mouse.move(1, 1)
    shown.wait(PAUSE_MS)

    def press_on() -> None:
        for dx, dy in 2 * JITTER:
            page.mouse.click(x + dx, y + dy)
            shown.wait(520)

    press_on()
    until(lambda: [each["arguments"]["text"] for each in house.bob.pending()] == ["two"], "the next call waits")
    press_on()
    assert shown.answers == ["approve"]
    page.clock.resume()
    chat.stop()
    expect(chat.modal).to_be_hidden()
