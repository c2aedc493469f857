"""A real server process dies at the worst moments; what stands afterwards is the truth."""

from typing import Any

import pytest

from tests.outside import Outside
from tests.processes import Person, Server, Servers
from tests.scripted_model import Gate, ScriptedModel, calls, text
from tests.waiting import until

on_servers = pytest.mark.servers("what a killed process leaves is what was committed")

ORDER = ("order", {"what": "a lamp"})


@pytest.fixture
def server(servers: Servers, outside: Outside, scripted_model: ScriptedModel) -> Server:
    started = servers.start(**scripted_model.environment)
    started.sign_in("alice").add_tool(hitlMode="REQUIRED", **outside.tool)
    return started


def restart(server: Server) -> None:
    server.kill()
    server.start()


def approve(person: Person) -> dict[str, Any]:
    """Say yes to the one call that waits."""
    (approval,) = person.pending()
    answer = person.post(f"/api/approvals/{approval['id']}/approve", {"consentDigest": approval["consentDigest"]})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.guarantee("run:survives")
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_conversation_that_waits_survives_a_kill_and_its_call_runs_once(
    server: Server, outside: Outside, scripted_model: ScriptedModel
) -> None:
    bob = server.sign_in("bob")
    scripted_model.enqueue(calls(ORDER), text("It is ordered."))
    conversation = bob.begin("Order a lamp")
    bob.wait_for_call(conversation, "waiting")
    restart(server)
    # He is signed in still.
    page = bob.socket(conversation)
    page.until("data-approve")
    assert outside.orders == []
    approve(bob)
    bob.wait_for_answer(conversation, "It is ordered.")
    assert outside.orders == ['"a lamp"']


@on_servers
@pytest.mark.slow("kills a server")
@pytest.mark.guarantee("run:survives")
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_question_to_the_person_survives_kills_before_and_after_its_answer(
    servers: Servers, scripted_model: ScriptedModel
) -> None:
    server = servers.start(**scripted_model.environment | {"HITL_ASK_USER": "1"})
    bob = server.sign_in("bob")
    gate = Gate()
    scripted_model.enqueue(calls(("ask_user", {"question": "Which lamp?"})), text("The", gate), text("The red one."))
    conversation = bob.begin("Order a lamp")
    bob.wait_for_call(conversation, "waiting")
    restart(server)
    (approval,) = bob.pending()
    yes = f"/api/approvals/{approval['id']}/approve"
    assert bob.post(yes, {"consentDigest": approval["consentDigest"]}).status_code == 422
    answer = {"modifiedArguments": {"answer": {"answer": "The red one"}}}
    assert bob.post(yes, answer | {"consentDigest": approval["consentDigest"]}).status_code == 200
    gate.wait()
    restart(server)
    bob.wait_for_answer(conversation, "The red one.")
    told = [each["content"] for each in scripted_model.messages if each["role"] == "tool"]
    assert ["The red one" in each for each in told] == [True]


@on_servers
@pytest.mark.slow("kills a server")
@pytest.mark.guarantee("run:survives")
def test_a_turn_that_was_being_written_is_asked_again(server: Server, scripted_model: ScriptedModel) -> None:
    bob = server.sign_in("bob")
    gate = Gate()
    scripted_model.enqueue(text("Half of the", gate), text("The whole answer."))
    conversation = bob.begin("Tell me")
    gate.wait()
    restart(server)
    bob.wait_for_answer(conversation, "The whole answer.")
    assert bob.answers(conversation) == ["The whole answer."]
    assert scripted_model.requests[0] == scripted_model.requests[1]


@on_servers
@pytest.mark.slow("kills a server")
@pytest.mark.guarantee("gate:at-most-once", "gate:truth", "SR-12")
def test_calls_that_were_executing_are_unknown_until_a_person_says_so_or_has_one_run_again(
    server: Server, outside: Outside, scripted_model: ScriptedModel
) -> None:
    bob = server.sign_in("bob")
    outside.gate = Gate()
    begun = []
    for number in (1, 2):
        scripted_model.enqueue(calls(ORDER))
        begun.append(bob.begin("Order a lamp"))
        bob.wait_for_call(begun[-1], "waiting")
        approve(bob)
        until(lambda number=number: len(outside.orders) == number, "it executes")  # type: ignore[misc]
    scripted_model.enqueue(text("I cannot tell."), text("I cannot tell."))
    restart(server)
    unknown = []
    for conversation in begun:
        unknown += bob.wait_for_call(conversation, "unknown")
        bob.wait_for_answer(conversation, "I cannot tell.")
        assert "may or may not have happened. Do not repeat it." in scripted_model.told[0]
    settled, repeated = begun
    page = bob.socket(settled)
    page.send(type="resolve", call=unknown[0]["id"], outcome="done")
    page.until("You marked order: it did happen.")
    assert "of order: it did happen." in said_next(bob, settled, scripted_model)
    page = bob.socket(repeated)
    page.send(type="resolve", call=unknown[1]["id"], outcome="again")
    bob.wait_for_call(repeated, "waiting")
    assert len(outside.orders) == 2
    outside.gate.open()
    approve(bob)
    # That is written once the call has ended: only then the model reads it with what is said next.
    page.until("order has ended since: succeeded.")
    bob.wait_for_call(repeated, "succeeded")
    assert len(outside.orders) == 3
    assert "of order has ended since: succeeded. ordered" in said_next(bob, repeated, scripted_model)


def said_next(person: Person, conversation: str, model: ScriptedModel) -> str:
    """Return what the model is sent last with the next message."""
    model.enqueue(text("Good to know."))
    person.post(f"/api/conversations/{conversation}/messages", {"content": "So?"})
    person.wait_for_answer(conversation, "Good to know.")
    return str(model.messages[-1]["content"])


@on_servers
@pytest.mark.slow("stops a server")
@pytest.mark.guarantee("run:survives")
def test_a_stop_of_the_server_tells_open_pages_and_hands_the_run_back(
    server: Server, scripted_model: ScriptedModel
) -> None:
    bob = server.sign_in("bob")
    gate = Gate()
    scripted_model.enqueue(text("Half of the", gate), text("The whole answer."))
    conversation = bob.begin("Tell me")
    page = bob.socket(conversation)
    page.until("Half of the")
    assert server.stop() == 0
    assert page.close_code() == 1012
    server.start()
    bob.wait_for_answer(conversation, "The whole answer.")
    assert "Traceback" not in server.log


@on_servers
@pytest.mark.slow("stops a server")
@pytest.mark.guarantee("gate:at-most-once")
def test_a_stop_of_the_server_gives_an_executing_call_time_to_end(
    server: Server, outside: Outside, scripted_model: ScriptedModel
) -> None:
    bob = server.sign_in("bob")
    outside.gate = Gate()
    scripted_model.enqueue(calls(ORDER), text("It is ordered."))
    conversation = bob.begin("Order a lamp")
    bob.wait_for_call(conversation, "waiting")
    approve(bob)
    outside.gate.wait()
    server.signal(15)
    outside.gate.open()
    assert server.wait() == 0
    server.start()
    bob.wait_for_call(conversation, "succeeded")
    bob.wait_for_answer(conversation, "It is ordered.")
    assert outside.orders == ['"a lamp"']
