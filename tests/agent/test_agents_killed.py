"""Agents on real servers that die at the worst moments: nothing is lost, and nothing happens twice."""

from typing import Any

import pytest

from tests.agent.cast import TOP, Cast
from tests.outside import Outside
from tests.processes import Person, Server, Servers
from tests.scripted_model import Gate, ScriptedModel, calls, text
from tests.waiting import until

pytestmark = pytest.mark.slow("kills servers")

TASK = {"task": "Order a lamp."}
ORDER = ("order", {"what": "a lamp"})


@pytest.fixture
def server(servers: Servers, outside: Outside, scripted_model: ScriptedModel) -> Server:
    started = servers.start(**scripted_model.environment)
    alice = started.sign_in("alice")
    alice.add_tool(hitlMode="REQUIRED", **outside.tool)
    for name, tools in (("worker", ["order"]), ("supervisor", ["worker"])):
        agent = {"name": name, "description": f"A {name}.", "instructions": f"Be a {name}.", "tools": tools}
        answer = alice.post("/api/agents", agent | {"hitlMode": "DISABLED", "published": True})
        assert answer.status_code == 201, answer.text
    return started


def restart(server: Server) -> None:
    server.kill()
    server.start()


def pending(person: Person) -> dict[str, Any]:
    """The one approval that waits, once there is one."""
    return until(person.pending, "an approval waits")[0]


def approve(person: Person, approval: dict[str, Any]) -> None:
    answer = person.post(f"/api/approvals/{approval['id']}/approve", {"consentDigest": approval["consentDigest"]})
    assert answer.status_code == 200, answer.text


def through_both(cast: Cast) -> None:
    cast.plays(TOP, calls(("supervisor", TASK)), text("All done."))
    cast.plays("supervisor", calls(("worker", TASK)), text("The worker ordered it."))


@pytest.mark.guarantee("run:survives")
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_tree_that_waits_survives_a_kill_and_its_call_runs_once(server: Server, outside: Outside, cast: Cast) -> None:
    bob = server.sign_in("bob")
    through_both(cast)
    cast.plays("worker", calls(ORDER), text("Ordered."))
    conversation = bob.begin("Order a lamp")
    approval = pending(bob)
    restart(server)
    assert (outside.orders, bob.pending()[0]["id"]) == ([], approval["id"])
    assert [each["tool"] for each in approval["agents"]] == ["supervisor", "worker"]
    approve(bob, approval)
    bob.wait_for_answer(conversation, "All done.")
    assert outside.orders == ['"a lamp"']
    assert [len(cast.asked[name]) for name in (TOP, "supervisor", "worker")] == [2, 2, 2]


@pytest.mark.guarantee("run:survives")
@pytest.mark.guarantee("gate:at-most-once")
def test_an_agent_that_was_answering_when_its_server_died_goes_on_and_ends_its_call_once(
    server: Server, outside: Outside, cast: Cast
) -> None:
    bob = server.sign_in("bob")
    gate = Gate()
    through_both(cast)
    cast.plays("worker", text("Half of", gate, " it."), text("There was nothing to order."))
    conversation = bob.begin("Order a lamp")
    gate.wait()
    restart(server)
    bob.wait_for_answer(conversation, "All done.")
    assert cast.told("supervisor") == ["There was nothing to order."]
    (call,) = bob.calls(conversation)
    assert (call["toolName"], call["status"]) == ("supervisor", "succeeded")
    below = bob.calls(call["agentConversationId"])
    assert [(each["toolName"], each["status"]) for each in below] == [("worker", "succeeded")]
    assert outside.orders == []


@pytest.mark.guarantee("gate:at-most-once")
@pytest.mark.guarantee("gate:truth")
def test_a_call_of_an_agent_that_was_executing_is_unknown_to_the_agent_and_happened_once(
    server: Server, outside: Outside, cast: Cast
) -> None:
    bob = server.sign_in("bob")
    outside.gate = Gate()
    through_both(cast)
    cast.plays("worker", calls(ORDER), text("I cannot tell."))
    conversation = bob.begin("Order a lamp")
    approve(bob, pending(bob))
    outside.gate.wait()
    restart(server)
    bob.wait_for_answer(conversation, "All done.")
    assert "may or may not have happened. Do not repeat it." in cast.told("worker")[0]
    assert cast.told("supervisor") == ["I cannot tell."]
    assert outside.orders == ['"a lamp"']


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_waits_in_a_tree_that_was_stopped_stays_withdrawn_after_a_kill(
    server: Server, outside: Outside, cast: Cast
) -> None:
    bob = server.sign_in("bob")
    through_both(cast)
    cast.plays("worker", calls(ORDER))
    conversation = bob.begin("Order a lamp")
    approval = pending(bob)
    (call,) = bob.calls(conversation)
    bob.socket(conversation).send(type="stop")
    until(lambda: not bob.pending(), "nothing waits any more")
    restart(server)
    assert bob.post(f"/api/approvals/{approval['id']}/approve").status_code == 409
    (call,) = bob.calls(conversation)
    assert (call["status"], call["error"]["kind"]) == ("failed", "stopped")
    assert bob.get(f"/api/approvals/{approval['id']}").json()["status"] == "withdrawn"
    assert outside.orders == []
