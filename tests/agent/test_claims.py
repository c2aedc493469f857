"""Who works on a run: claims, leases, takeovers, and the races between them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from hitlchat.agent import runner, runs, transcript
from hitlchat.agent.answer import Answer, ModelCall
from hitlchat.agent.models import ACTIVE, Conversation, MessageState, Role, Run, RunStatus
from hitlchat.agent.runs import Claim, RunActive
from hitlchat.base.background import background
from hitlchat.gate import decide
from hitlchat.gate.models import Approval, ToolCall, new_id
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, Prepared, admit
from tests.agent.talk import Talk, in_database
from tests.conftest import caller, signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, ScriptedModel, calls, text
from tests.waiting import soon, stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("row locks tell two at a time apart")]

LONG_AGO = timedelta(minutes=10)


@pytest.fixture
async def house(loop: None) -> AsyncIterator[None]:
    """The heartbeat and the sweeper run, as in a server."""
    keepers = [asyncio.create_task(each.work()) for each in (runner.heartbeat(), runner.sweeper())]
    yield
    for keeper in keepers:
        keeper.cancel()
    await asyncio.wait(keepers)


@pytest.fixture
def quick_lease(settings: Settings) -> None:
    settings.LEASE_SECONDS = 3


@contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads with database connections of their own, which are closed in the end."""
    pool = ThreadPoolExecutor(count)
    yield pool
    barrier = threading.Barrier(count)

    def close() -> None:
        barrier.wait(40)
        connection.close()

    closing = [pool.submit(close) for _ in range(count)]
    for each in closing:
        each.result(20)
    pool.shutdown()


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What `work` returns or raises in `count` threads that begin at the same moment."""
    barrier = threading.Barrier(count)

    def one(number: int) -> Any:
        barrier.wait(40)
        try:
            return work(number)
        except Exception as error:  # noqa: BLE001 - it is what the test looks at
            return error

    with threads(count) as pool:
        return list(pool.map(one, range(count)))


async def steal(run: Run) -> None:
    """Another process takes the run over."""
    later = timezone.now() + LONG_AGO
    await Run.objects.filter(pk=run.pk).aupdate(owner="another process", lease_until=later)


# -- One worker at a time --------------------------------------------------------------------------------------------


def test_of_many_messages_at_once_one_begins_a_run(bob: User, recorder: Recorder) -> None:
    conversation = Conversation.objects.create(owner=bob)
    ended = together(6, lambda number: runs.start(conversation, f"message {number}"))
    assert [type(one) for one in ended if not isinstance(one, tuple)] == [RunActive] * 5
    assert conversation.runs.filter(status__in=ACTIVE).count() == 1
    assert conversation.messages.filter(role=Role.USER).count() == 1


def test_of_many_processes_one_takes_a_lapsed_run_over(bob: User) -> None:
    lapsed_run(bob)
    found = together(6, lambda _: runs.claim_lapsed())
    assert sorted(map(len, found)) == [0, 0, 0, 0, 0, 1]


def test_whoever_beats_keeps_the_runs_that_nobody_took_also_those_that_ended_or_wait_by_themselves(bob: User) -> None:
    # Of such a run the last is still to be told to its pages.
    going, ended, failed, waits, stopped, taken = claims = [claimed(bob) for _ in range(6)]
    runs.finish(ended, RunStatus.DONE)
    runs.finish(failed, RunStatus.FAILED, "no model")
    assert runs.park_with(waits, {Status.WAITING})
    assert runs.stop(stopped.run_id, signed_in(bob))
    taken.rows().update(owner="another process")
    assert runs.renew(claims) == {claim.run_id for claim in (going, ended, failed, waits)}


def claimed(person: User) -> Claim:
    _, claim = runs.start(Conversation.objects.create(owner=person), "Do it")
    return claim


async def test_a_lost_claim_writes_nothing_of_its_answer(talk: Talk, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(text("Mine", gate, " alone"))
    run = await talk.say()
    await gate.arrival()
    await talk.text_arrived("Mine")
    await steal(run)
    gate.open()
    await everything_ended()
    (message,) = await talk.messages(Role.ASSISTANT)
    assert (message.state, message.wire, message.content) == (MessageState.STREAMING, "", "")
    assert (await talk.run()).owner == "another process"


async def test_a_lost_claim_makes_no_call(talk: Talk, recorder: Recorder, scripted_model: ScriptedModel) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    gate = Gate()
    scripted_model.enqueue(calls(("look", {}), gate=gate))
    run = await talk.say()
    await gate.arrival()
    await steal(run)
    gate.open()
    await everything_ended()
    assert (recorder.entered, await talk.calls()) == ([], [])


async def test_a_lost_claim_does_not_report_its_own_failure(talk: Talk, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(text(gate))
    run = await talk.say()
    await gate.arrival()
    await steal(run)
    gate.open()
    await everything_ended()
    assert (await talk.notices(), (await talk.run()).status) == ([], RunStatus.RUNNING)


async def test_the_heartbeat_lets_go_of_a_run_that_is_no_longer_held(talk: Talk, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(text("Slow", gate))
    run = await talk.say()
    await gate.arrival()
    await steal(run)
    keeper = asyncio.create_task(runner.heartbeat().work())
    await everything_ended(but=keeper)
    keeper.cancel()
    await asyncio.wait([keeper])


# -- Takeover --------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("run:survives")
async def test_a_takeover_drops_the_partial_answer_and_asks_again(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("From the start."))
    await in_database(lapsed_run)(talk.owner, talk.conversation, partial="From the st")
    assert (await with_house(talk)).status == RunStatus.DONE
    assert await talk.answers() == ["From the start."]
    assert scripted_model.messages == [{"role": "user", "content": "hello"}]


@pytest.mark.slow("waits for the end of a lease")
@pytest.mark.guarantee("run:survives")
async def test_a_run_in_good_hands_keeps_its_lease_and_is_not_taken_over(
    quick_lease: None, talk: Talk, house: None, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.enqueue(text("Slow", gate, "ly"))
    run = await talk.say()
    await gate.arrival()
    assert run.lease_until is not None
    renewed = Run.objects.filter(pk=run.pk, owner=run.owner, lease_until__gt=run.lease_until + timedelta(seconds=3))
    await stored(renewed.exists, "the lease was renewed beyond its first end")
    gate.open()
    await talk.over()
    assert await talk.answers() == ["Slowly"]


@pytest.mark.guarantee("gate:at-most-once")
async def test_a_takeover_does_not_make_the_calls_of_the_turn_again(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    """The process died between storing a turn with its calls and parking."""
    scripted_model.enqueue(text("Done."))
    claim = await in_database(lapsed_run)(talk.owner, talk.conversation)
    await in_database(store_turn)(claim, talk, Status.REJECTED)
    assert (await with_house(talk)).status == RunStatus.DONE
    assert recorder.entered == []
    assert len(scripted_model.told) == 1


@pytest.mark.guarantee("run:survives")
async def test_a_call_that_was_approved_while_no_server_ran_is_run_by_the_next(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    approval = await parked_long_ago(talk, scripted_model)
    await without_server(talk.approve, approval)
    await ToolCall.objects.aupdate(created_at=timezone.now() - LONG_AGO)
    assert (await with_house(talk)).status == RunStatus.DONE
    assert recorder.entered == [("send", {})]


@pytest.mark.guarantee("run:survives")
async def test_a_call_that_was_declined_long_before_the_next_server_start_lets_the_run_go_on(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    approval = await parked_long_ago(talk, scripted_model)
    await without_server(talk.decline, approval)
    await ToolCall.objects.aupdate(settled_at=timezone.now() - LONG_AGO)
    assert (await with_house(talk)).status == RunStatus.DONE
    assert '"status": "declined"' in scripted_model.told[0]


# -- The race between parking and waking -----------------------------------------------------------------------------


def test_a_run_is_not_parked_for_calls_that_have_settled_already(bob: User, recorder: Recorder) -> None:
    claim, call, approval = waiting_turn(bob)
    decide.decline(approval.pk, signed_in(bob))
    assert not runs.park(claim, turn(call))
    assert Run.objects.get().owner == claim.token


def test_a_call_that_settles_while_its_run_is_being_parked_wakes_it(bob: User, recorder: Recorder) -> None:
    claim, call, approval = waiting_turn(bob)
    settled = threading.Event()

    def settle_and_wake() -> Claim | None:
        decide.decline(approval.pk, signed_in(bob))
        settled.set()
        return runs.wake(turn(call))

    with threads(1) as pool:
        with transaction.atomic():
            assert runs.park(claim, turn(call))
            waking = pool.submit(settle_and_wake)
            # On SQLite the other one can't even write before this is committed; on PostgreSQL it waits to wake.
            settled.wait(10 if connection.vendor == "postgresql" else 0.2)
            assert not waking.done()
        woken = waking.result(20)
    assert woken is not None
    assert (Run.objects.get().owner, Run.objects.get().parked) == (woken.token, False)


def test_of_many_that_wake_a_run_one_gets_it(bob: User, recorder: Recorder) -> None:
    claim, call, approval = waiting_turn(bob)
    assert runs.park(claim, turn(call))
    decide.decline(approval.pk, signed_in(bob))
    woken = together(6, lambda _: runs.wake(turn(call)))
    assert len([one for one in woken if one is not None]) == 1


def test_a_run_with_an_open_call_is_not_woken(bob: User, recorder: Recorder) -> None:
    claim, call, _ = waiting_turn(bob)
    assert runs.park(claim, turn(call))
    assert runs.wake(turn(call)) is None


def test_a_stopped_run_is_not_woken(bob: User, recorder: Recorder) -> None:
    claim, call, _ = waiting_turn(bob)
    assert runs.park(claim, turn(call))
    assert runs.stop(claim.run_id, signed_in(bob))
    assert runs.wake(turn(call)) is None


# -- Scenes ----------------------------------------------------------------------------------------------------------


def lapsed_run(owner: User, conversation: Conversation | None = None, partial: str = "") -> Claim:
    """A run whose process fell silent, maybe in the middle of an answer."""
    found = conversation or Conversation.objects.create(owner=owner)
    _, claim = runs.start(found, "hello")
    if partial:
        message = transcript.open_answer(found.pk, claim.run_id, new_id())
        transcript.append(message.pk, claim.token, partial)
    Run.objects.filter(pk=claim.run_id).update(lease_until=timezone.now() - LONG_AGO)
    return claim


def waiting_turn(owner: User) -> tuple[Claim, ToolCall, Approval]:
    """A claimed run whose turn has one waiting call."""
    _, claim = runs.start(Conversation.objects.create(owner=owner), "hello")
    message = transcript.open_answer(claim.conversation_id, claim.run_id, new_id())
    tool = recorded_tool("send")
    request = CallRequest("send", {}, caller(owner), conversation_id=claim.conversation_id, turn_id=message.pk)
    call = admit(Prepared(request, Status.WAITING, "Asked.", tool, {}))
    runs.hold(claim, turn_id=message.pk)
    return claim, call, call.approval


def turn(call: ToolCall) -> UUID:
    assert call.turn_id is not None
    return call.turn_id


def store_turn(claim: Claim, talk: Talk, status: Status) -> None:
    message = transcript.open_answer(claim.conversation_id, claim.run_id, new_id())
    transcript.close_answer(message.pk, Answer(calls=[ModelCall("call_x", "nothing", "{}")]))
    request = CallRequest(
        "nothing",
        {},
        caller(talk.owner),
        conversation_id=claim.conversation_id,
        turn_id=message.pk,
        model_call_id="call_x",
    )
    admit(Prepared(request, status, "There is no such tool."))
    Run.objects.filter(pk=claim.run_id).update(turn_id=message.pk)


async def parked_long_ago(talk: Talk, scripted_model: ScriptedModel) -> Approval:
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", {})), text("Done."))
    await talk.say()
    (approval,) = await talk.asked()
    return approval


async def without_server(act: Callable[..., Any], approval: Approval) -> None:
    """Decide as a command does: in a process that has no server loop."""
    background.adopt(None)
    await act(approval)
    background.adopt(asyncio.get_running_loop())


async def with_house(talk: Talk) -> Run:
    keeper = asyncio.create_task(runner.sweeper().work())
    run = await talk.over()
    keeper.cancel()
    await asyncio.wait([keeper])
    return run


async def everything_ended(but: asyncio.Task[Any] | None = None) -> None:
    own = {asyncio.current_task(), but} - {None}
    await soon(lambda: asyncio.all_tasks() <= own, "nothing works on the run any more")
