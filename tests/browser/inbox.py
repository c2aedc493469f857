"""Calls that wait for bob without a page of his, and his inbox."""

from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.chatting import settle
from tests.browser.conftest import House, SharedModel
from tests.scripted_model import calls
from tests.waiting import until


class Asking:
    """Asks bob about calls in conversations that nobody looks at."""

    def __init__(self, house: House, model: SharedModel) -> None:
        self._house, self._model = house, model
        self._runs: list[str] = []

    def __call__(self, *wanted: tuple[str, dict[str, Any]]) -> None:
        """All in one turn; they wait when this returns."""
        before = len(self._house.bob.pending())
        self._model.enqueue(calls(*wanted))
        conversation = self._house.bob.post("/api/conversations", {"title": "Far away"}).json()["id"]
        said = self._house.bob.post(f"/api/conversations/{conversation}/messages", {"content": "Do it."})
        self._runs.append(said.json()["runId"])
        until(lambda: len(self._house.bob.pending()) == before + len(wanted), "the calls wait")

    def end(self) -> None:
        """Withdraw what still waits."""
        for run in self._runs:
            self._house.bob.post(f"/api/runs/{run}/stop")
        self._runs.clear()
        until(lambda: not self._house.bob.pending(), "nothing waits any more")


class Inbox:
    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = f"{url}/approvals/"
        self.lines = page.locator("[data-line]")
        self.card = page.locator("#card-slot [data-ask]")
        self.lately = page.get_by_role("region", name="Recent decisions")
        self.selected = page.get_by_role("region", name="Selected")

    def open(self, query: str = "") -> "Inbox":
        self.page.goto(self.url + query)
        return self

    def line(self, words: str) -> Locator:
        return self.lines.filter(has_text=words)

    def shows(self, words: str) -> Locator:
        """The card with these words, once what is done to it counts."""
        expect(self.card.get_by_role("heading", level=3)).to_contain_text(words)
        settle(self.page)
        return self.card
