"""A conversation's page, as a person uses it."""

import re
from typing import Any, Final

from playwright.sync_api import Locator, Page, expect

from tests.processes import Server

# The product ignores keys and clicks on a card this young; a person is slower, a test has to wait.
GRACE_MS: Final = 600


class Chat:
    def __init__(self, page: Page, server: Server, conversation: str) -> None:
        self.page = page
        self.conversation = conversation
        self.url = f"{server.url}/chat/{conversation}"
        self.modal = page.locator("dialog[data-ask-modal]")
        self.cards = self.modal.locator("[data-ask]")
        self.composer = page.get_by_label("Message")
        self.send = page.get_by_role("button", name="Send")
        self.log = page.get_by_role("region", name="Transcript")
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
        self.page.wait_for_timeout(GRACE_MS)
        return self.cards.first

    def approve(self, card: Locator | None = None) -> None:
        approve_button(card or self.asked()).click()

    def decline(self, card: Locator | None = None) -> None:
        decline_button(card or self.asked()).click()

    def call(self, status: str) -> Locator:
        """The lines of calls with this status in the transcript."""
        return self.log.locator(f".call:has([data-status={status}])")

    def said(self, words: str) -> None:
        expect(self.log.locator(".said.assistant").last).to_contain_text(words)

    def notice(self) -> Locator:
        return self.log.locator(".said.notice")


def approve_button(card: Locator) -> Locator:
    return card.get_by_role("button", name=re.compile("^Approve"))


def decline_button(card: Locator) -> Locator:
    return card.get_by_role("button", name=re.compile("^Decline"))


def focused(page: Page) -> Any:
    """The focused element's text, or its name."""
    return page.evaluate("(document.activeElement.innerText || document.activeElement.name || '').trim()")


def is_focused(locator: Locator) -> bool:
    return bool(locator.evaluate("element => element === document.activeElement"))
