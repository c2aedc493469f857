"""The same conversation open twice: what is decided in one page is decided in the other."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import WebSocketRoute, expect

from tests.browser.chatting import Chat, decline
from tests.browser.conftest import House, SharedModel, Visit
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser


# The list of conversations asks anew every ten seconds: here it does not.
NEVER_BY_ITSELF: Final = """const later = window.setTimeout;
window.setTimeout = (act, wait, ...more) => wait === 10_000 ? 0 : later(act, wait, ...more);"""


@pytest.fixture
def second(visit: Visit, house: House, chat: Chat) -> Chat:
    return Chat(visit(house.server, house.bob), house.server, chat.conversation)


@pytest.mark.slow("another story of several pages")
def test_the_list_beside_a_page_says_at_once_that_another_conversation_waits(
    chat: Chat, visit: Visit, model: SharedModel, house: House
) -> None:
    model.enqueue(calls(("echo", {"text": "elsewhere"})), text("Done."))
    chat.page.add_init_script(NEVER_BY_ITSELF)
    chat.open()
    expect(chat.page.locator("main > [data-offline]")).to_be_hidden()
    other = Chat(visit(house.server, house.bob), house.server, house.bob.begin("")).open()
    other.say("Wait beside the other page")
    other.asked()
    beside = chat.page.get_by_role("complementary", name="Conversations").locator(".threads")
    link = beside.get_by_role("link", name="Wait beside the other page")
    expect(link).to_contain_text("waiting calls: 1")
    other.approve()
    other.said("Done.")
    expect(link).not_to_contain_text("waiting calls")


@pytest.mark.guarantee("gate:one-outcome")
def test_deciding_in_one_ends_it_in_the_other_and_of_opposite_decisions_one_counts(
    chat: Chat, second: Chat, model: SharedModel, house: House
) -> None:
    let_through = hold_back_what_is_told(second)
    second.open()
    model.enqueue(calls(("echo", {"text": "both"})), text("Both."))
    chat.say()
    second.asked()
    for one in (chat, second):
        expect(one.cards.get_by_role("heading")).to_have_text("Say both")
    second.approve(second.cards.first)
    for one in (chat, second):
        expect(one.modal).to_be_hidden()
        expect(one.call("succeeded")).to_have_count(1)
        one.said("Both.")

    model.enqueue(calls(("echo", {"text": "yes or no"})), text("Done."))
    chat.say()
    second.asked()
    let_through(False)
    chat.approve(chat.cards.first)
    expect(chat.call("succeeded")).to_have_count(2)
    decline(second.cards.first)
    let_through(True)
    expect(second.flash).to_contain_text("Your answer was not recorded.")
    expect(second.modal).to_be_hidden()
    expect(second.call("succeeded")).to_have_count(2)
    call = house.calls(chat.conversation)[-1]
    assert (call["status"], call["result"]) == ("succeeded", "yes or no")


def hold_back_what_is_told(chat: Chat) -> Callable[[bool], None]:
    """Between this page and its server: what the server says waits for as long as the test wants."""
    held: list[str | bytes] = []
    routes: list[WebSocketRoute] = []
    state = {"through": True}

    def route(page_side: WebSocketRoute) -> None:
        routes.append(page_side)
        server_side = page_side.connect_to_server()
        server_side.on_message(lambda message: page_side.send(message) if state["through"] else held.append(message))

    def let_through(through: bool) -> None:
        state["through"] = through
        while through and held:
            routes[-1].send(held.pop(0))

    chat.page.route_web_socket("**/ws/**", route)
    return let_through
