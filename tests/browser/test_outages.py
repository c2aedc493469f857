"""The server goes away while a call waits or executes, and comes back: nothing is lost, nothing runs twice."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.chatting import Chat, approve
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.watching import AWAY
from tests.processes import Installation, Servers, copy_of
from tests.scripted_model import Gate, calls, text

pytestmark = pytest.mark.browser

# For tools that execute until their server is killed.
PATIENT: Final = {"TOOL_SLEEP_SECONDS": "60", "TOOL_WALL_SECONDS": "90"}


@pytest.fixture(scope="module")
def house(furnished: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server of these tests alone: they kill it, and start it again."""
    model = SharedModel()
    servers = Servers(copy_of(furnished, tmp_path_factory.mktemp("outages") / "data"))
    server = servers.start(**model.environment, **PATIENT, TOOL_WORKERS="8")
    yield House(server, model, server.sign_in("bob"), server.sign_in("alice"))
    servers.close()
    model.close()


@pytest.fixture
def page(visit: Visit, house: House) -> Page:
    page = visit(house.server, house.bob)
    visit.watch(page).expect(AWAY)
    return page


@pytest.mark.guarantee("run:survives")
@pytest.mark.guarantee("gate:at-most-once")
def test_a_yes_given_while_the_server_is_away_is_delivered_when_it_is_back_and_runs_once(
    chat: Chat, model: SharedModel, house: House
) -> None:
    model.enqueue(calls(("count", {})), text("Counted."))
    chat.say()
    card = chat.asked()
    house.server.kill()
    expect(chat.modal.locator("[data-offline]")).to_contain_text("Reconnecting")
    looking.check(chat.page)
    approve(card)
    expect(card.get_by_role("status")).to_contain_text("Your answer (approve) will be sent")
    house.server.start()
    expect(chat.modal).to_be_hidden()
    chat.said("Counted.")
    expect(chat.offline).to_be_hidden()
    (call,) = house.calls(chat.conversation)
    assert (call["status"], call["result"]) == ("succeeded", 1)


@pytest.mark.slow("kills a server")
@pytest.mark.guarantee("run:survives")
def test_a_reload_brings_the_question_back_and_the_page_says_that_it_reconnects_and_goes_on_by_itself(
    chat: Chat, model: SharedModel, house: House
) -> None:
    model.enqueue(calls(("echo", {"text": "patience"})))
    chat.say()
    chat.asked()
    chat.page.reload()
    chat.asked()
    chat.composer.fill("written before")
    house.server.kill()
    expect(chat.offline).to_contain_text("Reconnecting")
    expect(chat.send).to_be_disabled()
    house.server.start()
    expect(chat.offline).to_be_hidden()
    expect(chat.composer).to_have_value("written before")
    expect(chat.call("waiting")).to_have_count(1)
    model.enqueue(text("Done."))
    chat.to_cards.press("Enter")
    chat.approve()
    chat.said("Done.")


@pytest.mark.slow("kills a server")
@pytest.mark.guarantee("run:survives")
def test_half_an_answer_of_a_server_that_was_killed_goes_from_the_open_page_once_it_is_asked_for_again(
    chat: Chat, model: SharedModel, house: House
) -> None:
    gate = Gate()
    model.enqueue(text("Half of the", gate, " answer."), text("The whole of it."))
    chat.say()
    chat.said("Half of the")
    house.server.kill()
    gate.open()
    house.server.start()
    chat.said("The whole of it.")
    expect(chat.log.get_by_text("Half of the")).to_have_count(0)
    expect(chat.log.locator(".said.assistant")).to_have_count(1)


@pytest.mark.slow("kills a server")
@pytest.mark.guarantee("gate:at-most-once")
def test_a_call_of_unknown_outcome_is_settled_by_what_a_person_found_out(
    chat: Chat, model: SharedModel, house: House
) -> None:
    model.enqueue(calls(*(("slow", {"n": n}) for n in (50, 51, 52))), text("I cannot know."))
    chat.say()
    for left in (3, 2, 1):
        chat.approve(chat.asked(left))
        expect(chat.cards).to_have_count(left - 1)
    expect(chat.call("executing")).to_have_count(3)
    house.server.kill()
    house.server.start()
    expect(chat.call("unknown")).to_have_count(3)
    chat.said("I cannot know.")
    looking.check(chat.page)
    unknown = chat.log.locator(".call.unsure")
    unknown.first.get_by_role("button", name="It happened").click()
    expect(chat.call("succeeded")).to_have_count(1)
    unknown.first.get_by_role("button", name="It did not happen").click()
    expect(chat.call("failed")).to_have_count(1)
    unknown.first.get_by_role("button", name="Run it again…").click()
    chat.decline()
    expect(chat.call("declined")).to_have_count(1)
    expect(chat.notice()).to_have_count(2)
