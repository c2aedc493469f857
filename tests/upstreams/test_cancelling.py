"""A call that executes is told to stop: its server hears of it, and nobody pretends that nothing was done."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from hitlchat.base.database import in_db
from hitlchat.gate import stopping
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams.models import QuestionState
from tests.conftest import signed_in
from tests.gate.asking import events
from tests.processes import Server, Servers, installation, migrated, servers
from tests.scripted_model import ScriptedModel, calls, scripted_model, text
from tests.upstreams.asking import WAYS, Counter, StartCounter, asked, open_question
from tests.upstreams.gated import asked as submitted
from tests.upstreams.gated import exposed, read, settled
from tests.waiting import soon, stored, until

__all__ = ["installation", "migrated", "scripted_model", "servers"]

in_this_process = pytest.mark.usefixtures("allow_stdio", "serving")
pytestmark = pytest.mark.django_db(transaction=True)


async def going(alice: User, person: User, there: Counter, name: str = "steps", **arguments: object) -> ToolCall:
    tools = await exposed(alice, await in_db(there.add)(alice), name)
    return await submitted(person, tools[name], **arguments)


def why(call: ToolCall) -> str:
    return str(AuditEvent.objects.get(call=call, name="call.unknown").data["reason"])


@in_this_process
@pytest.mark.guarantee("gate:truth")
@pytest.mark.parametrize(
    "how", [pytest.param(WAYS[0], marks=pytest.mark.servers("processes tell each other over Redis")), *WAYS[1:]]
)
async def test_the_server_is_told_and_the_outcome_is_unknown(
    how: str, alice: User, bob: User, counter: StartCounter
) -> None:
    there = await asyncio.to_thread(counter, how)
    call = await going(alice, bob, there, seconds=60)
    await soon(lambda: there.log == ["began"], "it has begun")
    assert await in_db(stopping.request)(call.pk, signed_in(bob))
    ended = await settled(call)
    assert (ended.status, ended.error) == (Status.UNKNOWN, None)
    assert await in_db(why)(call) == ("it was stopped by bob: the server counter was told to stop, and may have run it")
    assert "it may or may not have happened" in await read(call)
    await soon(lambda: there.log == ["began", "cancelled"], "the server has heard of it")


@in_this_process
async def test_stopping_takes_back_a_question_that_is_open(alice: User, bob: User, counter: StartCounter) -> None:
    there = await asyncio.to_thread(counter, "http-2025")
    call = await going(alice, bob, there, "paint")
    await open_question(bob)
    await in_db(stopping.request)(call.pk, signed_in(bob))
    assert (await settled(call)).status == Status.UNKNOWN
    (question,) = await in_db(asked)(call)
    assert question.state == QuestionState.GONE


@in_this_process
async def test_only_whoever_it_executes_for_may_stop_it_and_not_too_late(
    alice: User, bob: User, charlie: User, counter: StartCounter
) -> None:
    there = await asyncio.to_thread(counter, "http-2026")
    call = await going(alice, bob, there, seconds=1)
    await stored(lambda: ToolCall.objects.get(pk=call.pk).status == Status.EXECUTING, "it executes")
    for person in (alice, charlie):
        with pytest.raises(stopping.NoSuchCall):
            await in_db(stopping.request)(call.pk, signed_in(person))
    assert (await settled(call)).status == Status.SUCCEEDED
    assert not await in_db(stopping.request)(call.pk, signed_in(bob))
    assert stopping.REQUESTED not in await in_db(events)(call)
    assert (await in_db(ToolCall.objects.get)(pk=call.pk)).status == Status.SUCCEEDED


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counter]:
    started = Counter(tmp_path, "http-2026").start()
    yield started
    started.kill()


@pytest.fixture
def lease() -> dict[str, str]:
    """What the servers are started with besides; a test that kills one has the other notice it soon.

    A process looks for what another one wishes three times in a lease.
    """
    return {"LEASE_SECONDS": "15"}


@pytest.fixture
def two(
    servers: Servers, scripted_model: ScriptedModel, counted: Counter, lease: dict[str, str]
) -> tuple[Server, Server]:
    """On one database; both know the server."""
    first, second = (servers.start(**scripted_model.environment, **lease) for _ in range(2))
    counted.offer(servers.home)
    return first, second


@pytest.mark.processes
@pytest.mark.guarantee("run:survives")
def test_another_process_takes_the_answer_and_the_wish_to_stop(
    two: tuple[Server, Server], counted: Counter, scripted_model: ScriptedModel
) -> None:
    here, elsewhere = (server.sign_in("bob") for server in two)
    scripted_model.enqueue(calls(("counter_paint", {})), text("Painted."))
    conversation = here.begin("Paint")
    (question,) = until(lambda: elsewhere.get("/api/questions").json(), "the question waits")
    content = {"content": {"colour": "blue", "litres": 3, "gift": False}}
    assert elsewhere.post(f"/api/questions/{question['id']}/answer", content).status_code == 200
    here.wait_for_answer(conversation, "Painted.")
    assert counted.log == ["answered accept {'colour': 'blue', 'litres': 3, 'gift': False}"]
    scripted_model.enqueue(calls(("counter_steps", {"seconds": 60})), text("Stopped."))
    conversation = here.begin("Go")
    (call,) = here.wait_for_call(conversation, "executing")
    until(lambda: "began" in counted.log, "it has begun")
    assert elsewhere.post(f"/api/calls/{call['id']}/stop").json()["status"] == "executing"
    here.wait_for_answer(conversation, "Stopped.")
    assert here.calls(conversation)[0]["status"] == "unknown"
    until(lambda: counted.log[-1] == "cancelled", "the server has heard of it")


@pytest.mark.slow("kills a process")
@pytest.mark.embedded
@pytest.mark.parametrize("lease", [{}], ids=["killed"])
def test_when_the_process_that_waits_is_killed_the_question_is_gone(
    two: tuple[Server, Server], scripted_model: ScriptedModel
) -> None:
    here, elsewhere = (server.sign_in("bob") for server in two)
    scripted_model.enqueue(calls(("counter_paint", {})), text("Lost."))
    conversation = here.begin("Paint")
    (question,) = until(lambda: elsewhere.get("/api/questions").json(), "the question waits")
    two[0].kill()
    elsewhere.wait_for_call(conversation, "unknown")
    assert elsewhere.get(f"/api/questions/{question['id']}").json()["status"] == "gone"
    answer = elsewhere.post(f"/api/questions/{question['id']}/answer", {"content": {"colour": "blue"}})
    assert answer.status_code == 409
    elsewhere.wait_for_answer(conversation, "Lost.")
