"""Presses and letters that are no answer, on every surface on which a card stands; with real mouse, fingers and keys.

Each page stands for many rows: its clock goes on only when the test says so, and what would be sent is noted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chatting import Chat, approve_button, decline_button, look_through, middle, settle, stop_clock
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.inbox import Inbox
from tests.processes import Person
from tests.scripted_model import Reply, calls, text
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.guarantee("gate:seen"), pytest.mark.timeout(300)]

INTERVALS: Final = (120, 450, 520, 700, 1400)
# The tremor of a hand, in px.
JITTER: Final = ((0, 0), (12, 0), (-12, 7), (5, -12), (-8, 12), (0, -9))
PAUSE_MS: Final = 600
TAPS_MS: Final = 1600
# Answers that got past the guard, by what they say.
NOTE_ANSWERS: Final = """
window.answers = [];
document.addEventListener("submit", event => {
  const form = new FormData(event.target, event.submitter);
  if (form.get("verdict")) window.answers.push(form.get("verdict"));
});
"""
CAME_AGAIN: Final = "window.dispatchEvent(new Event('focus'))"
OVER: Final = text("Over.")
SURFACES: Final = ("transcript", "window", "inbox", "its own page", "studio")
each_surface = pytest.mark.parametrize(
    "surface", [SURFACES[0], *(pytest.param(name, marks=pytest.mark.slow("another surface")) for name in SURFACES[1:])]
)
TYPED: Final = ("and thanks", "are you sure", "also pay", "a e r area", "yes please, do it?", "d'accord")


@dataclass(frozen=True)
class Asked:
    """A card that waits on some page, and how it is answered for good."""

    page: Page
    card: Locator
    person: Person

    def answers(self) -> list[str]:
        return list(self.page.evaluate("window.answers"))

    def come_again(self) -> None:
        """Have the pause of the card begin as if it came just now."""
        self.page.evaluate(CAME_AGAIN)

    def wait(self, ms: int) -> None:
        self.page.clock.run_for(ms)

    def is_waiting(self) -> bool:
        return len(self.person.pending()) == 1


Ask = Callable[..., Asked]


@pytest.fixture
def ask(visit: Visit, house: House, model: SharedModel) -> Iterator[Ask]:
    def ask(surface: str, then: Reply = OVER) -> Asked:
        person = house.alice if surface == "studio" else house.bob
        page = visit(house.server, person, has_touch=True)
        page.add_init_script(NOTE_ANSWERS)
        if surface != "studio":
            model.enqueue(calls(("echo", {"text": "one"})), then)
        card = _show(surface, page, house)
        look_through(card)
        settle(page)
        stop_clock(page)
        return Asked(page, card, person)

    yield ask
    for person in (house.alice, house.bob):
        for left in person.pending():
            person.post(f"/api/approvals/{left['id']}/reject", {})


def _show(surface: str, page: Page, house: House) -> Locator:
    if surface in ("transcript", "window"):
        chat = Chat(page, house.server, house.bob.begin("")).open()
        if surface == "window":
            chat.in_a_window()
        chat.say()
        return chat.asked()
    if surface == "studio":
        page.goto(f"{house.server.url}/studio/tools/echo")
        page.get_by_role("button", name="Run test").click()
        return page.locator("[data-ask]")
    house.bob.begin("Do it.")
    until(lambda: bool(house.bob.pending()), "the call waits")
    if surface == "inbox":
        inbox = Inbox(page, house.server.url).open()
        inbox.line("Say").get_by_role("link").first.click()
        return inbox.shows("Say one")
    page.goto(f"{house.server.url}/approvals/{house.bob.pending()[0]['id']}")
    return page.locator("[data-ask]")


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
    asked = ask(surface)
    page = asked.page
    got_through = []
    for place, (x, y) in places(asked.card).items():
        for every in INTERVALS if surface == SURFACES[0] else INTERVALS[1::3]:
            for begin in ("before the card", "after it", "by finger"):
                if begin == "by finger" and place.startswith("edge"):
                    continue
                press = page.touchscreen.tap if begin == "by finger" else page.mouse.click
                page.mouse.move(x, y)
                asked.come_again()
                if begin == "after it":
                    asked.wait(PAUSE_MS)
                for dx, dy in JITTER[: 6 if every < 1000 else 3]:
                    press(x + dx, y + dy)
                    asked.wait(every)
                if answers := asked.answers():
                    got_through.append((place, every, begin, answers))
                    page.evaluate("window.answers = []")
                # A click beside a button may have opened what stands there.
                page.keyboard.press("Escape")
    assert got_through == []
    assert asked.is_waiting()


@each_surface
def test_a_press_counts_once_the_pointer_has_come_to_the_button_anew_and_the_card_says_so(
    surface: str, ask: Ask
) -> None:
    asked = ask(surface)
    x, y = places(asked.card)["no"]
    asked.page.mouse.move(x, y)
    asked.come_again()
    asked.wait(PAUSE_MS)
    asked.page.mouse.click(x, y)
    hint = asked.card.get_by_text("Move the pointer away from the button and back, then press.")
    expect(hint).to_be_visible()
    assert asked.answers() == []
    asked.page.mouse.move(1, 1)
    # What it says may move the buttons, which are to stand still again.
    anew = places(asked.card)["no"]
    asked.wait(2 * PAUSE_MS)
    asked.page.mouse.click(*anew)
    assert asked.answers() == ["decline"]
    until(lambda: not asked.person.pending(), "it is declined")


def test_a_tap_counts_once_nothing_near_was_tapped_for_a_moment(ask: Ask) -> None:
    asked = ask("transcript")
    asked.come_again()
    for _ in range(2):
        asked.page.touchscreen.tap(*places(asked.card)["yes"])
        asked.wait(700)
    expect(asked.card.get_by_text("Wait two seconds, then tap once.")).to_be_visible()
    assert asked.answers() == []
    asked.wait(TAPS_MS)
    asked.page.touchscreen.tap(*places(asked.card)["yes"])
    assert asked.answers() == ["approve"]
    until(lambda: not asked.person.pending(), "it is approved")


def starts(surface: str, asked: Asked) -> dict[str, Callable[[], None]]:
    """What somebody did last before they type."""
    page, card = asked.page, asked.card
    title = card.locator("h3").first

    def click_in_the_pause() -> None:
        asked.come_again()
        title.click()

    def open_and_leave_more() -> None:
        card.get_by_text("More", exact=True).click()
        if surface != "window":
            page.keyboard.press("Escape")
        card.locator("details.menu.end").evaluate("menu => menu.open = false")

    def press_too_early() -> None:
        asked.come_again()
        for _ in range(2):
            page.mouse.click(*places(card)["no"])
            asked.wait(300)

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
    asked = ask(surface)
    got_through = []
    for number, (name, start) in enumerate(starts(surface, asked).items()):
        # Each start with half of the texts, or with one of them.
        for words in TYPED[number % 2 :: 2] if surface == SURFACES[0] else [TYPED[number % len(TYPED)]]:
            start()
            asked.wait(700)
            for letter in words:
                asked.page.keyboard.press(letter)
                asked.wait(130)
            asked.wait(1200)
            if answers := asked.answers():
                got_through.append((name, words, answers))
                asked.page.evaluate("window.answers = []")
            if surface != "window":
                # It would put the window off; elsewhere it closes what a question mark opened.
                asked.page.keyboard.press("Escape")
    assert got_through == []
    assert asked.is_waiting()


def test_what_is_typed_outside_of_fields_in_the_chat_goes_into_the_message(ask: Ask) -> None:
    asked = ask("transcript")
    composer = asked.page.get_by_label("Message")
    for focus in (asked.card, approve_button(asked.card), asked.page.get_by_role("region", name="Transcript")):
        composer.fill("")
        focus.focus()
        asked.page.keyboard.type("and thanks a lot")
        expect(composer).to_be_focused()
        expect(composer).to_have_value("and thanks a lot")
    asked.page.keyboard.press("Control+a")
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
    asked = ask(surface)
    keys = asked.page.keyboard
    asked.page.get_by_role("heading", level=2).last.focus()
    keys.press(key)
    asked.card.focus()
    asked.come_again()
    keys.press(key)
    asked.wait(PAUSE_MS)
    keys.press("x")
    asked.card.focus()
    asked.wait(PAUSE_MS)
    keys.press(key)
    assert asked.answers() == [], "not on the card, within its pause, or as part of typing"
    asked.wait(1100)
    keys.press(key)
    assert asked.answers() == [verdict]
    until(lambda: not asked.person.pending(), "it is answered")


@pytest.mark.parametrize("key", ["Enter", pytest.param("Space", marks=pytest.mark.slow("another key"))])
def test_a_key_on_a_button_counts_a_second_after_the_last_letter_and_the_card_says_so(key: str, ask: Ask) -> None:
    asked = ask("its own page")
    button = approve_button(asked.card)
    button.focus()
    asked.page.keyboard.press("x")
    asked.wait(900)
    asked.page.keyboard.press(key)
    assert asked.answers() == []
    expect(asked.card.get_by_text("You typed a moment ago. Wait a second, then press the key again.")).to_be_visible()
    asked.wait(1100)
    asked.page.keyboard.press(key)
    assert asked.answers() == ["approve"]
    until(lambda: not asked.person.pending(), "it is approved")


def test_turn_after_turn_only_the_press_that_came_to_its_button_answers(
    ask: Ask, house: House, model: SharedModel
) -> None:
    asked = ask("transcript", then=calls(("echo", {"text": "two"})))
    model.enqueue(OVER)
    x, y = places(asked.card)["yes"]
    asked.page.mouse.move(1, 1)
    asked.wait(PAUSE_MS)
    for n in range(30):
        dx, dy = JITTER[n % len(JITTER)]
        asked.page.mouse.click(x + dx, y + dy)
        asked.wait(520)
    until(lambda: [each["arguments"]["text"] for each in house.bob.pending()] == ["two"], "the next call waits")
    for n in range(12):
        dx, dy = JITTER[n % len(JITTER)]
        asked.page.mouse.click(x + dx, y + dy)
        asked.wait(520)
    assert asked.answers() == ["approve"]
