"""Connections that are lost without a word: the page notices by itself, and says what may not have arrived."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chatting import Chat, approve_button, look_through, press
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.inbox import Inbox
from tests.browser.swallowing import Network
from tests.browser.watching import AWAY
from tests.scripted_model import calls, text
from tests.waiting import until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow("waits for connections that were swallowed"),
    pytest.mark.guarantee("run:survives"),
]

BACK: Final = "window.dispatchEvent(new Event('online'))"
FOCUS: Final = "window.dispatchEvent(new Event('focus'))"
# A server that ends each connection right after it was made, in the same way each time.
FAILING: Final = """
const Usual = window.WebSocket;
window.made = 0;
window.WebSocket = class extends Usual {
  constructor(...given) {
    super(...given);
    if (!this.url.includes("/ws/conversations/")) return;
    window.made += 1;
    this.addEventListener("open", () => setTimeout(() => this.dispatchEvent(new CloseEvent("close", { code: 1011 }))));
  }
};
"""


@pytest.fixture
def network(house: House) -> Iterator[Network]:
    made = Network(house.server.port)
    yield made
    made.close()


@pytest.fixture
def page(visit: Visit, house: House, network: Network) -> Page:
    page = visit(network, house.bob)
    visit.watch(page).expect(AWAY)
    return page


@pytest.fixture
def chat(page: Page, house: House, network: Network) -> Chat:
    return Chat(page, network, house.bob.begin("")).open()


def while_silent(page: Page, comes: Locator) -> None:
    """Let the page's clock run on, second by second, until it has noticed that nobody answers, and this comes."""

    def look() -> bool:
        page.clock.run_for(1000)
        return comes.count() > 0

    until(look, "the page notices")


@pytest.mark.parametrize("sign", [BACK, FOCUS, ""])
def test_a_page_whose_connection_was_swallowed_makes_another_and_shows_what_waits(
    chat: Chat, network: Network, model: SharedModel, house: House, sign: str
) -> None:
    chat.composer.fill("Are you there?")
    expect(chat.send).to_be_enabled()
    network.swallow()
    model.enqueue(calls(("echo", {"text": "one"})))
    house.bob.post(f"/api/conversations/{chat.conversation}/messages", {"content": "Do it."})
    until(lambda: len(house.bob.pending()) == 1, "the call waits")
    chat.page.evaluate(sign or "0")
    while_silent(chat.page, chat.cards)
    chat.asked()
    expect(chat.composer).to_have_value("Are you there?")
    expect(chat.offline).to_be_hidden()
    chat.stop()
    expect(chat.modal).to_be_hidden()


def test_an_answer_that_was_swallowed_says_so_and_is_given_again(
    chat: Chat, network: Network, model: SharedModel
) -> None:
    model.enqueue(calls(("echo", {"text": "one"})), text("Said."))
    chat.say()
    card = chat.asked()
    look_through(card)
    network.swallow()
    press(approve_button(card))
    unsure = card.get_by_role("status").get_by_text("Your answer may not have arrived.")
    while_silent(chat.page, unsure)
    expect(unsure).to_be_visible()
    expect(chat.offline).to_be_hidden()
    press(approve_button(card))
    chat.said("Said.")


def test_a_message_that_was_swallowed_stays_in_the_composer_and_the_page_says_so(
    chat: Chat, network: Network, model: SharedModel
) -> None:
    chat.composer.fill("Hello?")
    expect(chat.send).to_be_enabled()
    network.swallow()
    chat.composer.press("Enter")
    while_silent(chat.page, chat.flash.get_by_text("may not have arrived"))
    expect(chat.flash).to_contain_text("may not have arrived")
    expect(chat.composer).to_have_value("Hello?")
    expect(chat.send).to_be_enabled()
    model.enqueue(text("Hello."))
    chat.composer.press("Enter")
    chat.said("Hello.")


def test_the_inbox_notices_too(page: Page, visit: Visit, network: Network, house: House, model: SharedModel) -> None:
    visit.watch(page).expect("htmx:timeout")
    inbox = Inbox(page, network.url).open()
    expect(page.get_by_text("Nothing is waiting for you")).to_be_visible()
    network.swallow()
    model.enqueue(calls(("echo", {"text": "one"})))
    house.bob.begin("Do it.")
    until(lambda: len(house.bob.pending()) == 1, "the call waits")
    page.evaluate(BACK)
    # The browser keeps up to six connections for what pages fetch, and tries one after the other, five seconds each.
    while_silent(page, inbox.lines)
    expect(inbox.lines).to_have_count(1)
    for left in house.bob.pending():
        model.enqueue(text("Over."))
        house.bob.post(f"/api/approvals/{left['id']}/reject", {})


def test_a_connection_that_fails_each_time_is_given_up_and_the_page_says_what_to_do(chat: Chat) -> None:
    chat.page.add_init_script(FAILING)
    chat.open()
    expect(chat.offline).to_contain_text("Reload the page")
    assert chat.page.evaluate("window.made") == 2
