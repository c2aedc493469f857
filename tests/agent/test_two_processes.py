"""Two server processes on one PostgreSQL and one Redis: it makes no difference which of them is asked."""

import pytest
from django.conf import settings

from tests.outside import Outside
from tests.processes import STEADY, Server, Servers
from tests.scripted_model import Gate, ScriptedModel, calls, text

needs_redis = pytest.mark.skipif(not settings.REDIS_URL, reason="needs Redis (REDIS_URL)")
pytestmark = [
    pytest.mark.postgres,
    needs_redis,
    pytest.mark.servers("what a killed process leaves is what was committed"),
]

killed = pytest.mark.parametrize("lease", [{}], ids=["killed"])
ORDER = ("order", {"what": "a lamp"})


@pytest.fixture
def lease() -> dict[str, str]:
    """What the servers are started with besides; a test that kills one has the other notice it soon."""
    return STEADY


@pytest.fixture
def two(
    servers: Servers, outside: Outside, scripted_model: ScriptedModel, lease: dict[str, str]
) -> tuple[Server, Server]:
    first, second = (servers.start(**scripted_model.environment, **lease) for _ in range(2))
    first.sign_in("alice").add_tool(hitlMode="REQUIRED", **outside.tool)
    return first, second


@pytest.mark.guarantee("run:survives")
def test_what_is_asked_in_one_process_is_decided_in_the_other_and_both_pages_follow(
    two: tuple[Server, Server], outside: Outside, scripted_model: ScriptedModel
) -> None:
    bob = two[0].sign_in("bob")
    gate = Gate()
    scripted_model.enqueue(calls(ORDER), text("It is ", gate, "ordered."))
    conversation = bob.begin("Order a lamp")
    pages = [bob.socket(conversation, server) for server in two]
    for page in pages:
        page.until("data-approve")
    (approval,) = bob.pending()
    pages[1].send(type="decide", approval=approval["id"], verdict="approve", digest=approval["consentDigest"])
    for page in pages:
        page.until("It is")
    gate.open()
    for page in pages:
        page.until("It is ordered.")
    assert outside.orders == ['"a lamp"']


@pytest.mark.slow("starts two servers")
@pytest.mark.guarantee("gate:one-outcome")
def test_opposite_answers_in_two_processes_have_one_outcome(
    two: tuple[Server, Server], outside: Outside, scripted_model: ScriptedModel
) -> None:
    bob = two[0].sign_in("bob")
    scripted_model.enqueue(calls(ORDER), text("Whatever."))
    conversation = bob.begin("Order a lamp")
    bob.wait_for_call(conversation, "waiting")
    (approval,) = bob.pending()
    pages = [bob.socket(conversation, server) for server in two]
    for page, verdict in zip(pages, ("approve", "decline"), strict=True):
        page.send(type="decide", approval=approval["id"], verdict=verdict, digest=approval["consentDigest"])
    bob.wait_for_answer(conversation, "Whatever.")
    (call,) = bob.calls(conversation)
    assert (call["status"], len(outside.orders)) in [("succeeded", 1), ("declined", 0)]


@pytest.mark.slow("starts two servers")
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_one_process_makes_stricter_asks_in_the_other(
    two: tuple[Server, Server], outside: Outside, scripted_model: ScriptedModel
) -> None:
    two[0].sign_in("alice").add_tool(**outside.tool | {"name": "free_order", "hitlMode": "DISABLED"})
    bob = two[0].sign_in("bob")
    gate = Gate()
    scripted_model.enqueue(text("Soon", gate), calls(("free_order", {"what": "a lamp"})), text("Done."))
    conversation = bob.begin("Order a lamp")
    gate.wait()
    address = f"/api/conversations/{conversation}"
    assert two[1].sign_in("bob").patch(address, {"asks": "every"}).json()["asks"] == "every"
    gate.open()
    bob.wait_for_answer(conversation, "Soon")
    bob.post(f"{address}/messages", {"content": "Now."})
    bob.wait_for_call(conversation, "waiting")
    assert outside.orders == []
    (approval,) = bob.pending()
    bob.socket(conversation, two[1]).send(
        type="decide", approval=approval["id"], verdict="approve", digest=approval["consentDigest"]
    )
    bob.wait_for_answer(conversation, "Done.")
    assert outside.orders == ['"a lamp"']


@pytest.mark.slow("starts two servers")
@killed
@pytest.mark.guarantee("run:survives")
def test_when_the_process_that_asks_the_model_is_killed_the_other_takes_over(
    two: tuple[Server, Server], scripted_model: ScriptedModel
) -> None:
    bob = two[0].sign_in("bob")
    gate = Gate()
    scripted_model.enqueue(text("Half of the", gate), text("The whole answer."))
    conversation = bob.begin("Tell me")
    gate.wait()
    page = bob.socket(conversation, two[1])
    page.until("Half of the")
    two[0].kill()
    page.until("The whole answer.")


@pytest.mark.slow("starts two servers")
@killed
@pytest.mark.guarantee("gate:at-most-once")
def test_when_the_process_that_executes_is_killed_the_other_says_unknown(
    two: tuple[Server, Server], outside: Outside, scripted_model: ScriptedModel
) -> None:
    bob = two[0].sign_in("bob")
    outside.gate = Gate()
    scripted_model.enqueue(calls(ORDER), text("I cannot tell."))
    conversation = bob.begin("Order a lamp")
    bob.wait_for_call(conversation, "waiting")
    (approval,) = bob.pending()
    bob.post(f"/api/approvals/{approval['id']}/approve")
    outside.gate.wait()
    page = bob.socket(conversation, two[1])
    two[0].kill()
    page.until("Outcome unknown")
    page.until("I cannot tell.")
    assert outside.orders == ['"a lamp"']


@pytest.mark.slow("starts two servers")
def test_stopping_in_one_process_ends_the_run_of_the_other(
    two: tuple[Server, Server], scripted_model: ScriptedModel
) -> None:
    bob = two[0].sign_in("bob")
    gate = Gate()
    scripted_model.enqueue(text("Half of the", gate))
    conversation = bob.begin("Tell me")
    gate.wait()
    # Who stops the run elsewhere keeps what is stored: the words reach open pages before that.
    bob.wait_for_answer(conversation, "Half of the")
    page = bob.socket(conversation, two[1])
    page.until("Half of the")
    page.send(type="stop")
    page.until("The answer was cut off here.")
