"""Every way to press a button, on every surface on which a card stands: none of them answers by accident.

Pages without a server, whose clock goes on only when the test says so; the input is the browser's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from playwright.sync_api import CDPSession, Locator, Page, expect

from hitlchat.gate.card import Card
from tests.browser.alone import Alone, asked
from tests.browser.chatting import approve, approve_button, decline, look_through, middle, settle, stop_clock
from tests.browser.conftest import Visit

pytestmark = [pytest.mark.browser, pytest.mark.guarantee("SR-39")]

# Longer than what came before still counts for a tap or a key.
REST_MS: Final = 1600
CAME_BACK: Final = (
    "window.dispatchEvent(new Event('focus'))",
    "document.dispatchEvent(new Event('visibilitychange'))",
)


@dataclass(frozen=True)
class Hand:
    """Ways to press a button: each puts something down on it, and returns how that comes up."""

    page: Page
    wire: CDPSession

    def mouse(self, button: Locator) -> Callable[[], None]:
        self.page.mouse.move(1, 1)
        self.page.mouse.move(*middle(button))
        self.page.mouse.down()
        return self.page.mouse.up

    def finger(self, button: Locator) -> Callable[[], None]:
        x, y = middle(button)
        self._send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        return lambda: self._send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def pen(self, button: Locator) -> Callable[[], None]:
        x, y = middle(button)
        tip = {"x": x, "y": y, "pointerType": "pen"}
        self._send("Input.dispatchMouseEvent", type="mouseMoved", **tip)
        self._send("Input.dispatchMouseEvent", type="mousePressed", button="left", clickCount=1, **tip)
        return lambda: self._send("Input.dispatchMouseEvent", type="mouseReleased", button="left", clickCount=1, **tip)

    def enter(self, button: Locator) -> Callable[[], None]:
        return self._key(button, "Enter")

    def space(self, button: Locator) -> Callable[[], None]:
        return self._key(button, "Space")

    def _key(self, button: Locator, key: str) -> Callable[[], None]:
        button.focus()
        self.page.keyboard.down(key)
        return lambda: self.page.keyboard.up(key)

    def _send(self, method: str, **values: Any) -> None:
        self.wire.send(method, values)


POINTERS: Final = (Hand.mouse, Hand.finger, Hand.pen)
INPUTS: Final = (*POINTERS, Hand.enter, Hand.space)


@dataclass(frozen=True)
class Shown:
    alone: Alone
    card: Locator
    hand: Hand

    @property
    def yes(self) -> Locator:
        return self.card.locator("[data-approve], [data-answers] > button")

    def wait(self, ms: int = REST_MS) -> None:
        self.alone.page.clock.run_for(ms)

    def answers(self) -> list[str]:
        """What got past the guard since this was asked last."""
        answers = self.alone.answers
        self.alone.page.evaluate("window.answers = []")
        return answers


def window(alone: Alone, *cards: Card) -> Locator:
    alone.page.add_init_script("localStorage.setItem('hitlchat-cards', 'window')")
    return alone.chat(*cards).cards


def together(alone: Alone, shown: Card) -> Locator:
    batch = alone.chat(shown, asked({"text": "two"}), together=True).modal.locator("[data-batch]")
    settle(alone.page)
    batch.locator("summary").first.click()
    return batch


SURFACES: Final[dict[str, Callable[[Alone, Card], Locator]]] = {
    "its own page": Alone.approval,
    "transcript": lambda alone, shown: alone.chat(shown).cards,
    "window": window,
    "inbox": Alone.inbox,
    "several calls together": together,
    "question of a server": lambda alone, _shown: alone.question(),
}


def show(alone: Alone, surface: str) -> Shown:
    page, card = alone.page, SURFACES[surface](alone, asked({"text": "one"}))
    settle(page)
    if card.locator("[data-approve]").count():
        look_through(card, card.locator("[data-approve]"))
    card.locator("[data-approve], [data-answers] > button").scroll_into_view_if_needed()
    settle(page)
    stop_clock(page)
    return Shown(alone, card, Hand(page, page.context.new_cdp_session(page)))


@pytest.fixture
def alone(visit: Visit) -> Alone:
    return Alone(visit(Alone, has_touch=True))


@pytest.mark.parametrize("surface", SURFACES)
def test_no_way_to_press_counts_in_the_pause_or_begun_in_it_and_each_counts_after_it(
    alone: Alone, surface: str
) -> None:
    shown = show(alone, surface)
    counted = {}
    for press in INPUTS:
        shown.wait()
        alone.page.evaluate(CAME_BACK[0])
        press(shown.hand, shown.yes)()
        shown.wait()
        alone.page.evaluate(CAME_BACK[1])
        lift = press(shown.hand, shown.yes)
        shown.wait()
        lift()
        shown.wait()
        early = shown.answers()
        press(shown.hand, shown.yes)()
        counted[press.__name__] = early, len(shown.answers())
    assert counted == {press.__name__: ([], 1) for press in INPUTS}


def test_a_press_under_way_while_two_cards_swap_places_answers_neither(alone: Alone) -> None:
    one, two = asked({"text": "one"}), asked({"text": "two"})
    chat = alone.chat(one, two)
    shown = Shown(alone, chat.asked(2), Hand(alone.page, alone.page.context.new_cdp_session(alone.page)))
    look_through(shown.card)
    settle(alone.page)
    stop_clock(alone.page)
    counted = {}
    for press in (*POINTERS, Hand.space):
        alone.tell(one, two)
        expect(chat.cards.first).to_have_id(f"ask-{one.key}")
        shown.wait()
        lift = press(shown.hand, shown.yes)
        alone.tell(two, one)
        expect(chat.cards.first).to_have_id(f"ask-{two.key}")
        lift()
        shown.wait()
        counted[press.__name__] = shown.answers()
    assert counted == {press.__name__: [] for press in (*POINTERS, Hand.space)}


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_key_that_is_held_down_since_before_a_card_came_never_answers_it(alone: Alone, key: str) -> None:
    cards, keys = window(alone), alone.page.keyboard
    alone.page.get_by_role("region", name="Transcript").focus()
    keys.down(key)
    alone.tell(asked({"text": "one"}))
    shown = Shown(alone, cards, Hand(alone.page, alone.page.context.new_cdp_session(alone.page)))
    look_through(shown.card)
    stop_clock(alone.page)
    for _ in range(12):
        # Wherever the focus comes to be meanwhile. Down again without up: the browser's own repetition.
        shown.yes.focus()
        keys.down(key)
        shown.wait(60)
    keys.up(key)
    shown.wait()
    assert shown.answers() == []
    shown.hand.enter(shown.yes)()
    assert shown.answers() == ["approve"]


# Chrome clicks without a pointer for a screen reader or a switch; Firefox with one of no kind.
HELPED: Final = {
    "a click": "button => button.click()",
    "a pointer of no kind and no place": """button => {
      for (const kind of ["pointerdown", "pointerup"]) button.dispatchEvent(new PointerEvent(kind, { bubbles: true }));
      button.click();
    }""",
}


@pytest.mark.parametrize("press", HELPED.values(), ids=HELPED)
def test_a_press_by_a_screen_reader_or_a_switch_counts_once_and_not_in_the_pause(alone: Alone, press: str) -> None:
    shown = show(alone, "transcript")
    alone.page.evaluate(CAME_BACK[0])
    shown.yes.evaluate(press)
    shown.wait()
    assert shown.answers() == []
    shown.yes.evaluate(press)
    assert shown.answers() == ["approve"]


# A window 1280 px wide and 1024 px high, enlarged to 400 %.
ENLARGED: Final[dict[str, Any]] = {"viewport": {"width": 320, "height": 256}, "device_scale_factor": 4}
LONG: Final = {"to": "anna@example.com", "text": "word " * 60, **{f"field_{n}": f"value {n}" for n in range(6)}}
# What reaches beyond the window, or is scrolled sideways in a box of its own.
SIDEWAYS: Final = """() => [document.documentElement, ...document.querySelectorAll("main *, dialog, dialog *")]
  .filter(each => each.checkVisibility() && !each.closest(".sr"))
  .filter(each => each.getBoundingClientRect().right > innerWidth + 1
    || (each.scrollWidth > each.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(each).overflowX)))
  .map(each => `${each.tagName}.${each.className}`)"""
LED_TO: Final = "document.activeElement.matches('dd, h3, .ask-why, .effect, .suspect-note')"


@pytest.mark.slow("another window")
@pytest.mark.parametrize("surface", ["its own page", "window", "inbox"])
@pytest.mark.guarantee("gate:seen")
def test_enlarged_to_400_percent_a_card_leads_to_what_was_not_in_view_is_scrolled_one_way_and_answered(
    visit: Visit, surface: str
) -> None:
    alone = Alone(visit(Alone, **ENLARGED))
    card = SURFACES[surface](alone, asked(LONG, tool="send_invoice_to_customer"))
    settle(alone.page)
    assert alone.page.evaluate(SIDEWAYS) == []
    expect(card.locator(".why-not").last).to_contain_text("Scroll to see")
    button = approve_button(card)
    button.scroll_into_view_if_needed()
    settle(alone.page)
    Hand(alone.page, alone.page.context.new_cdp_session(alone.page)).mouse(button)()
    assert alone.page.evaluate(LED_TO)
    assert alone.answers == []
    decline(card)
    approve(card)
    assert alone.answers == ["decline", "approve"]
