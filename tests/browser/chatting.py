"""A conversation's page, as a person uses it."""

import re
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from playwright.sync_api import Locator, Page, expect

from tests.waiting import until

# The product ignores keys and clicks on a card this young, by the page's clock, which a test has run.
GRACE_MS: Final = 600
# A key that comes sooner after a printable one is part of typing.
TYPING_MS: Final = 1100
# The way around leads past the list of conversations, as long as the tests before have made it.
MOST_STEPS: Final = 400
MOST_PRESSES: Final = 5
AGAIN: Final = "Move the pointer away from the button and back, then press."
ITS_CARD: Final = "button => button.closest('[data-ask], [data-batch]')?.id ?? 'none'"


class Site(Protocol):
    """A server, or what stands for one."""

    @property
    def url(self) -> str: ...


class Chat:
    def __init__(self, page: Page, site: Site, conversation: str) -> None:
        self.page = page
        self.conversation = conversation
        self.url = f"{site.url}/chat/{conversation}"
        self.modal = page.locator("dialog[data-ask-modal]")
        self.cards = self.modal.locator("[data-ask]")
        self.composer = page.get_by_label("Message")
        self.send = page.get_by_role("button", name="Send")
        self.log = page.get_by_role("region", name="Transcript")
        self.to_cards = page.get_by_role("button", name=re.compile("calls? waits?"))
        self.flash = page.locator("#flash")
        self.offline = page.locator("main > [data-offline]")

    def open(self) -> "Chat":
        self.page.goto(self.url)
        return self

    def say(self, content: str = "Do it.") -> None:
        self.composer.fill(content)
        expect(self.send).to_be_enabled()
        self.composer.press("Enter")

    def asked(self, count: int = 1) -> Locator:
        """The modal with so many cards, ready to be answered; the first card."""
        expect(self.modal).to_be_visible()
        expect(self.cards).to_have_count(count)
        settle(self.page)
        return self.cards.first

    def approve(self, card: Locator | None = None) -> None:
        approve(card or self.asked())

    def decline(self, card: Locator | None = None) -> None:
        decline(card or self.asked())

    def stop(self) -> None:
        """End the run, with whatever waits in it: a window lies above the button of the page."""
        # Looked for anew at each try: cards may still be on their way into a window, or out of it.
        place = self.page.locator("dialog[data-ask-modal]:modal, body:not(:has(dialog:modal)) #run")
        place.get_by_role("button", name="Stop").click()

    def in_a_window(self) -> "Chat":
        """Have the cards come up in a window, by choice also where there is room."""
        self.page.evaluate("localStorage.setItem('hitlchat-cards', 'window')")
        return self.open()

    def go_to_card(self) -> None:
        """From the composer to the first card, by keyboard."""
        self.page.keyboard.press("Tab")
        expect(self.to_cards).to_be_focused()
        self.page.keyboard.press("Enter")
        expect(self.cards.first).to_be_focused()

    def is_window(self) -> bool:
        """Whether the cards are in a window, and not in the transcript."""
        return bool(self.page.locator("dialog[data-ask-modal]:modal").count())

    def call(self, status: str) -> Locator:
        """The lines of calls with this status in the transcript."""
        return self.log.locator(f".call:has([data-status={status}])")

    def said(self, words: str) -> None:
        expect(self.log.locator(".said.assistant").last).to_contain_text(words)

    def notice(self) -> Locator:
        return self.log.locator(".said.notice")


def approve(card: Locator, button: Locator | None = None) -> None:
    """Look at all of the card, and click Approve with a pointer that comes from elsewhere."""
    button = button or approve_button(card)
    look_through(card, button)
    press(button)


def decline(card: Locator) -> None:
    press(decline_button(card).first)


def settle(page: Page) -> None:
    """Let the page's clock run on for as long as a person takes, until each card takes answers.

    Nobody waits for that: what counts for the guard is its own clock, and that nothing moved meanwhile.
    """
    page.clock.run_for(GRACE_MS)
    expect(page.locator("[data-fresh]")).to_have_count(0)


def stop_clock(page: Page) -> None:
    """Let the page's time go on only when the test says so."""
    page.clock.pause_at(datetime.now().astimezone() + timedelta(seconds=10))


def press(button: Locator) -> None:
    """Click a button of a card as a person does, with a pointer that comes once it has stood still.

    What comes meanwhile may move the button away under the pointer. Then the card says that the press did not count,
    and what to do, which is done.
    """
    for _ in range(MOST_PRESSES):
        # Scrolls it into view, which makes it stand still anew.
        button.hover()
        button.page.mouse.move(1, 1)
        settle(button.page)
        expect(button).to_be_enabled()
        # By its name: by then another card may stand in its place.
        card = button.page.locator(f"[id='{button.evaluate(ITS_CARD)}']")
        button.click()
        # A card with a form for a grant has two places that say so.
        if not card.get_by_text(AGAIN).filter(visible=True).count():
            return


def leave_menu(card: Locator) -> None:
    """Open what stands behind More, and leave it by Escape, which leaves nothing else."""
    more, raw = card.locator("details.menu.end > summary"), card.get_by_text("Raw JSON and consent digest")
    more.press("Enter")
    expect(raw).to_be_visible()
    card.page.keyboard.press("Escape")
    expect(raw).to_be_hidden()
    expect(more).to_be_focused()


def rest_hands(page: Page) -> None:
    """Type nothing for so long that the next key is no part of typing."""
    page.clock.run_for(TYPING_MS)


def look_through(card: Locator, button: Locator | None = None) -> None:
    """Scroll until each part of what `button` approves has been in view, as a reader does."""
    why = (
        (button or approve_button(card)).locator("xpath=ancestor::*[contains(@class, 'ask-foot')]").locator(".why-not")
    )

    def seen() -> bool:
        if UNSEEN.search(why.inner_text()):
            card.evaluate(NEXT_PART)
            return False
        return True

    until(seen, "all of it has been in view")


UNSEEN: Final = re.compile("Scroll through the whole card|Scroll to see")
# Brings the next stretch of the card to view, from its end the first one again, and waits until that was painted.
NEXT_PART: Final = """async card => {
  const window = card.closest("dialog:modal");
  const places = [card.closest(".modal-body"), window ?? card.closest(".log"), document.scrollingElement];
  const scroller = places.find(each => each && each.scrollHeight > each.clientHeight + 1);
  if (scroller) {
    const before = scroller.scrollTop;
    scroller.scrollTop += scroller.clientHeight / 3;
    if (scroller.scrollTop === before) scroller.scrollTop = 0;
  }
  for (const frame of [1, 2]) await new Promise(requestAnimationFrame);
}"""


def middle(button: Locator) -> tuple[float, float]:
    """Where its middle is in the window, in px."""
    box = button.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def approve_button(card: Locator) -> Locator:
    return card.get_by_role("button", name=re.compile("^Approve"))


def decline_button(card: Locator) -> Locator:
    return card.get_by_role("button", name=re.compile("^Decline"))


def focused(page: Page) -> Any:
    """The focused element's text, or its name."""
    return page.evaluate("(document.activeElement.innerText || document.activeElement.name || '').trim()")


def tab_to(page: Page, target: Locator, key: str = "Tab") -> None:
    """Press Tab, or Shift+Tab to go back, until the target, once it is there, has the focus."""
    expect(target).to_be_visible()
    for _ in range(MOST_STEPS):
        if is_focused(target):
            return
        page.keyboard.press(key)
    raise AssertionError(f"not reached in {MOST_STEPS} steps: {target}")


def is_focused(locator: Locator) -> bool:
    return bool(locator.evaluate("element => element === document.activeElement"))
