"""Connections that are lost without a word: the page notices by itself, and says what may not have arrived."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.alone import Alone
from tests.browser.chatting import Chat, approve_button, look_through, press, stop_clock
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.inbox import Asking, Inbox
from tests.browser.swallowing import Network
from tests.browser.watching import AWAY
from tests.scripted_model import calls, text
from tests.waiting import SECONDS, until

pytestmark = [pytest.mark.browser, pytest.mark.guarantee("run:survives")]
slow = pytest.mark.slow("waits for connections that were swallowed")

BACK: Final = "window.dispatchEvent(new Event('online'))"
FOCUS: Final = "window.dispatchEvent(new Event('focus'))"
# A server that ends each connection right after it was made, in the same way each time.
FAILING: Final = """
const Usual = window.WebSocket;
window.made = 0;
window.WebSocket = class extends Usual {
  constructor(...given) {
    super(...given);
    if (!this.url.includes("PATH")) return;
    window.made += 1;
    this.addEventListener("open", () => setTimeout(() => this.dispatchEvent(new CloseEvent("close", { code: 1011 }))));
  }
};
"""
# As long as the page waits for an answer: once something has told it that it may have been asleep, and by itself.
SOON_MS: Final = 4_000
BY_ITSELF_MS: Final = 23_000
# One that ends sooner after it opened has failed.
STAYS_MS: Final = 5_000
# The page tries again by then.
RECONNECTS_MS: Final = 1_000
# By itself it asks so long after it has connected, which it did meanwhile.
SINCE_MS: Final = BY_ITSELF_MS - RECONNECTS_MS
# Shorter than the pause before it tries again.
STEP_MS: Final = 100
# The browser keeps up to six connections for what pages fetch, and tries one after the other, five seconds each.
FETCHES_SECONDS: Final = 3 * 6 * 5


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


def while_silent(page: Page, comes: Locator, seconds: float = SECONDS) -> None:
    """Let the page's clock run on, second by second, until it has noticed that nobody answers, and this comes."""

    def look() -> bool:
        page.clock.run_for(1000)
        return comes.count() > 0

    until(look, "the page notices", seconds=seconds)


def test_a_page_makes_another_connection_once_nobody_answers_over_its_own_and_sooner_after_a_sign(
    alone: Alone,
) -> None:
    page = alone.page
    # From the beginning: while a page has asked by itself whether anybody is there, a sign makes it no more impatient.
    stop_clock(page)
    chat = alone.chat()
    chat.composer.fill("Are you there?")
    expect(chat.send).to_be_enabled()
    page.clock.run_for(STAYS_MS)
    for sign, patience, at_least in (
        (BACK, SOON_MS, SOON_MS),
        (FOCUS, SOON_MS, SOON_MS),
        ("0", BY_ITSELF_MS, SINCE_MS),
    ):
        alone.swallow()
        page.evaluate(sign)
        page.clock.run_for(at_least - STEP_MS)
        expect(chat.offline).to_be_hidden()
        waited = at_least - STEP_MS
        while chat.offline.is_hidden() and waited < patience:
            page.clock.run_for(STEP_MS)
            waited += STEP_MS
        expect(chat.offline).to_be_visible()
        page.clock.run_for(RECONNECTS_MS)
        expect(chat.offline).to_be_hidden()
    expect(chat.composer).to_have_value("Are you there?")


def test_a_message_that_was_swallowed_stays_in_the_composer_and_the_page_says_so(alone: Alone) -> None:
    chat = alone.chat()
    chat.composer.fill("Hello?")
    expect(chat.send).to_be_enabled()
    alone.swallow()
    chat.composer.press("Enter")
    while_silent(alone.page, chat.flash.get_by_text("may not have arrived"))
    expect(chat.flash).to_contain_text("may not have arrived")
    expect(chat.composer).to_have_value("Hello?")
    expect(chat.send).to_be_enabled()
    assert alone.sent == []
    chat.composer.press("Enter")
    until(lambda: alone.sent, "the message is sent again")
    assert alone.sent[0]["content"] == "Hello?"


def test_a_connection_that_fails_each_time_is_given_up_and_the_page_says_what_to_do(alone: Alone) -> None:
    chat = alone.chat()
    alone.page.add_init_script(FAILING.replace("PATH", "/ws/conversations/"))
    alone.page.reload()
    while_silent(alone.page, chat.offline.get_by_text("Reload the page"))
    assert alone.page.evaluate("window.made") == 2


@slow
def test_a_page_whose_connection_was_swallowed_makes_another_and_shows_what_waits(
    chat: Chat, network: Network, model: SharedModel, house: House
) -> None:
    chat.composer.fill("Are you there?")
    expect(chat.send).to_be_enabled()
    network.swallow()
    model.enqueue(calls(("echo", {"text": "one"})))
    house.bob.post(f"/api/conversations/{chat.conversation}/messages", {"content": "Do it."})
    until(lambda: len(house.bob.pending()) == 1, "the call waits")
    while_silent(chat.page, chat.cards)
    chat.asked()
    expect(chat.composer).to_have_value("Are you there?")
    expect(chat.offline).to_be_hidden()
    chat.stop()
    expect(chat.modal).to_be_hidden()


@slow
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


@slow
def test_the_inbox_notices_too(page: Page, visit: Visit, network: Network, house: House, model: SharedModel) -> None:
    visit.watch(page).expect("htmx:timeout")
    inbox = Inbox(page, network.url).open()
    expect(page.get_by_text("Nothing is waiting for you")).to_be_visible()
    network.swallow()
    Asking(house, model)(("echo", {"text": "one"}))
    page.evaluate(BACK)
    while_silent(page, inbox.lines, seconds=FETCHES_SECONDS)
    expect(inbox.lines).to_have_count(1)


@slow
def test_an_inbox_without_a_socket_notices_too_although_it_fetches_over_connections_that_were_swallowed(
    page: Page, visit: Visit, network: Network, house: House, model: SharedModel
) -> None:
    visit.watch(page).expect("htmx:timeout")
    page.add_init_script(FAILING.replace("PATH", "/ws/inbox"))
    inbox = Inbox(page, network.url).open()
    expect(page.get_by_text("Nothing is waiting for you")).to_be_visible()

    def gives_up() -> bool:
        page.clock.run_for(1000)
        return bool(page.evaluate("window.made == 2"))

    until(gives_up, "the page gives its socket up")
    network.swallow()
    Asking(house, model)(("echo", {"text": "one"}))
    while_silent(page, inbox.lines, seconds=FETCHES_SECONDS)
    expect(inbox.lines).to_have_count(1)
