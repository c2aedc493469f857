"""In its last minute a question gets five more, and every open page shows it."""

import re
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.chatting import Chat
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.looking import check
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

LATER: Final = re.compile(r"5:\d\d")
LIST_LOOKS_MS: Final = 15_000


def more(place: Page | Locator) -> Locator:
    return place.get_by_role("button", name="+5 min to answer")


def answer_after_a_look(route: Route, page: Page) -> None:
    answer = route.fetch()
    page.locator("dialog [data-left]").evaluate(
        """async (place) => {
            place.dispatchEvent(new Event("look"));
            await fetch(place.getAttribute("hx-get"), { headers: { "HX-Request": "true" } });
        }"""
    )
    route.fulfill(response=answer)


@pytest.mark.slow("another story of deciding")
def test_five_minutes_are_added_with_one_press_and_every_open_page_shows_them(
    chat: Chat, house: House, model: SharedModel, visit: Visit
) -> None:
    model.enqueue(calls(("soon", {"text": "hello"})))
    chat.say()
    card = chat.asked()
    other = visit(house.server, house.bob)
    other.goto(f"{house.server.url}/approvals/")
    line = other.locator("[data-line]", has_text="soon")
    expect(more(line)).to_be_visible()
    check(chat.page)
    check(other)
    expect(more(card)).to_be_visible()
    # Each piece looks for itself now and then, so also while the answer to the button is on its way.
    chat.page.route("**/extend", lambda route: answer_after_a_look(route, chat.page))
    more(card).focus()
    chat.page.keyboard.press("Enter")
    expect(card.locator("[data-deadline]")).to_have_text(LATER)
    expect(more(card)).to_be_hidden()
    expect(card.get_by_role("heading", level=3)).to_be_focused()
    # The list looks by itself now and then, which nobody waits for here.
    other.clock.run_for(LIST_LOOKS_MS)
    expect(line.locator("[data-deadline]")).to_have_text(LATER)
    expect(more(line)).to_be_hidden()
    chat.page.keyboard.press("Escape")
    expect(chat.call("waiting").locator("[data-deadline]")).to_have_text(LATER)
    chat.to_cards.press("Enter")
    model.enqueue(text("It said hello."))
    chat.approve(card)
    chat.said("It said hello.")
