"""What no event brings about: deadlines, dead processes, work left between two steps, callers that are gone."""

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Literal

import pytest
import time_machine
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from hitlchat.base import lease
from hitlchat.base.background import background
from hitlchat.gate import decide, perform
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.decide import AlreadySettled, NoSuchApproval
from hitlchat.gate.models import Tool, ToolCall, new_id
from hitlchat.gate.settling import ABANDONED, resolve, settled, sweep
from hitlchat.gate.sources import ToolResult
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import withdraw_turn
from tests.conftest import caller, signed_in
from tests.gate.asking import approval_of, approved, ask, events, fresh, recording, run, say_yes, status
from tests.gate.racing import meanwhile
from tests.tables import each_row

pytestmark = pytest.mark.django_db


def later(call: ToolCall, **columns: Any) -> None:
    """As if the moments in `columns` were an hour ago."""
    ToolCall.objects.filter(pk=call.pk).update(**dict.fromkeys(columns, timezone.now() - timedelta(hours=1)))


def lost(user: User, tool: Tool) -> ToolCall:
    """A call whose process died while executing it."""
    call = approved(user, tool)
    assert perform.claim(call.pk) is not None
    later(call, lease_until=True)
    sweep()
    return fresh(call)


@pytest.mark.servers("row locks tell two at a time apart")
def test_what_nobody_answered_in_time_expires(bob: User, tool: Tool) -> None:
    overdue, in_time = ask(bob, tool), ask(bob, tool)
    later(overdue, deadline=True)
    sweep()
    sweep()
    assert (status(overdue), status(in_time)) == (Status.EXPIRED, Status.WAITING)
    assert events(overdue) == ["call.waiting", "call.expired"]


@pytest.mark.guarantee("gate:at-most-once")
def test_an_interrupted_call_has_an_unknown_outcome_and_is_never_run_again(
    bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = lost(bob, tool)
    later(call, created_at=True)
    sweep()
    assert call.status == Status.UNKNOWN == status(call)
    assert not run(call)
    assert entered == []


def test_a_call_whose_process_lives_is_not_lost(bob: User, tool: Tool) -> None:
    call = approved(bob, tool)
    perform.claim(call.pk)
    sweep()
    assert status(call) == Status.EXECUTING


@pytest.mark.guarantee("gate:at-most-once")
@each_row("shift", [timedelta(hours=-1), timedelta(hours=1)], ids=["back", "forward"])
@pytest.mark.servers("each database has a clock of its own")
def test_the_databases_clock_says_when_a_lease_is_over_whatever_that_of_the_process(
    shift: timedelta, bob: User
) -> None:
    living, dead = (
        ToolCall.objects.create(
            tool_name="echo", status=Status.EXECUTING, caller=bob, caller_kind="chat", owner="other"
        )
        for _ in range(2)
    )
    with time_machine.travel(timezone.now() + shift):
        ToolCall.objects.filter(pk=living.pk).update(lease_until=lease.renewed())
        ToolCall.objects.filter(pk=dead.pk).update(lease_until=Now() - timedelta(seconds=1))
        assert perform.lose_overdue() == [dead.pk]
    assert (status(living), status(dead)) == (Status.EXECUTING, Status.UNKNOWN)


@pytest.mark.guarantee("gate:truth")
@each_row(
    "result,outcome",
    [(ToolResult(value="late"), Status.SUCCEEDED), (ToolResult.failure("error", "no"), Status.FAILED)],
    ids=["result", "error"],
)
def test_a_process_thought_dead_may_still_report(result: ToolResult, outcome: Status, bob: User, tool: Tool) -> None:
    call = lost(bob, tool)
    perform.settle(call.pk, result)
    assert status(call) == outcome
    assert events(call)[-2:] == ["call.unknown", f"call.{outcome.value}"]


@pytest.mark.guarantee("gate:truth")
def test_another_process_cannot_report_in_its_place(bob: User, tool: Tool) -> None:
    call = lost(bob, tool)
    ToolCall.objects.filter(pk=call.pk).update(owner="another")
    perform.settle(call.pk, ToolResult(value="made up"))
    assert (status(call), fresh(call).result) == (Status.UNKNOWN, None)


@each_row("outcome,end", [("done", Status.SUCCEEDED), ("failed", Status.FAILED)])
def test_a_person_who_found_out_says_what_happened(
    outcome: Literal["done", "failed"], end: Status, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = lost(bob, tool)
    resolve(call.pk, outcome, signed_in(bob))
    assert status(call) == end
    with pytest.raises(AlreadySettled):
        resolve(call.pk, "done", signed_in(bob))
    perform.settle(call.pk, ToolResult(value="too late"))
    assert (status(call), fresh(call).result) == (end, None)
    assert entered == []


@pytest.mark.guarantee("gate:only-people")
def test_nobody_else_says_what_happened(bob: User, charlie: User, tool: Tool) -> None:
    call = lost(bob, tool)
    for actor in (signed_in(charlie), caller(bob).actor, SYSTEM):
        with pytest.raises(NoSuchApproval):
            resolve(call.pk, "done", actor)
    assert status(call) == Status.UNKNOWN


@pytest.mark.django_db(transaction=True)
@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:one-outcome")
def test_of_two_who_say_what_happened_one_is_told_so(bob: User, tool: Tool) -> None:
    call = lost(bob, tool)
    with meanwhile(partial(resolve, call.pk, "failed", signed_in(bob))), pytest.raises(AlreadySettled):
        resolve(call.pk, "done", signed_in(bob))
    assert status(call) == Status.FAILED


def test_what_has_not_started_of_a_stopped_turn_is_withdrawn(bob: User, tool: Tool, entered: list[ToolCall]) -> None:
    turn = new_id()
    waiting, yes = ask(bob, tool, turn_id=turn), approved(bob, tool, turn_id=turn)
    started, elsewhere = approved(bob, tool, turn_id=turn), ask(bob, tool)
    perform.claim(started.pk)
    withdraw_turn(turn, actor=signed_in(bob), why="the run was stopped")
    assert [status(call) for call in (waiting, yes)] == [Status.WITHDRAWN] * 2
    assert (status(started), status(elsewhere)) == (Status.EXECUTING, Status.WAITING)
    assert not run(yes)
    assert entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_waiting_call_is_not_resolved_into_done(bob: User, waiting: ToolCall) -> None:
    with pytest.raises(AlreadySettled):
        resolve(waiting.pk, "done", signed_in(bob))
    assert status(waiting) == Status.WAITING


@pytest.mark.guarantee("gate:truth")
def test_an_allowed_call_whose_caller_has_gone_is_withdrawn(bob: User, entered: list[ToolCall]) -> None:
    tool = recording(mode="DISABLED")
    gone, recent, of_a_turn = ask(bob, tool), ask(bob, tool), ask(bob, tool, turn_id=new_id())
    assert timedelta(hours=1) > ABANDONED
    later(gone, created_at=True)
    later(of_a_turn, created_at=True)
    sweep()
    assert [status(call) for call in (gone, recent, of_a_turn)] == ["withdrawn", "allowed", "allowed"]
    assert not run(gone)
    assert entered == []


@pytest.mark.django_db(transaction=True)
async def test_what_was_approved_but_not_started_is_started(
    server_loop: None, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call, waiting = await crossing(approved)(bob, tool), await crossing(ask)(bob, tool)
    for each in (call, waiting):
        await crossing(later)(each, created_at=True)
    await crossing(sweep)()
    assert (await settled(call.pk, 10)).result == "done"
    assert [each.pk for each in entered] == [call.pk]
    assert await crossing(status)(waiting) == Status.WAITING


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_yes_starts_the_call_by_itself_and_once(
    server_loop: None, bob: User, waiting: ToolCall, entered: list[ToolCall]
) -> None:
    assert entered == []
    await crossing(say_yes)(bob, waiting)
    assert (await settled(waiting.pk, 10)).result == "done"
    assert len(entered) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_no_starts_nothing(server_loop: None, bob: User, waiting: ToolCall, entered: list[ToolCall]) -> None:
    approval = await crossing(approval_of)(waiting)
    await crossing(decide.decline)(approval.pk, signed_in(bob))
    await crossing(later)(waiting, created_at=True)
    await crossing(sweep)()
    assert (await settled(waiting.pk, 10)).status == Status.DECLINED
    assert entered == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:truth")
async def test_a_server_that_stops_while_a_tool_runs_leaves_an_unknown_outcome(
    server_loop: None, bob: User, entered: list[ToolCall]
) -> None:
    call = await crossing(approved)(bob, await crossing(recording)(source="hanging"))
    await background.drain(0.2)
    assert (await settled(call.pk, 10)).status == Status.UNKNOWN
    assert await crossing(perform.claim)(call.pk) is None
    assert [each.pk for each in entered] == [call.pk]


def crossing(function: Any) -> Any:
    return database_sync_to_async(function)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL reads small tables whole")
def test_a_sweep_walks_through_no_calls_however_many_are_on_record(bob: User, tool: Tool) -> None:
    ask(bob, tool)
    plans: list[str] = []

    def explain(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT"):
            # With the values given apart, as they are for the statement itself.
            explained = "EXPLAIN QUERY PLAN " + sql % tuple("?" * len(params))
            steps = context["connection"].connection.execute(explained, params).fetchall()
            plans.extend(step[-1] for step in steps if "gate_toolcall" in step[-1])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        sweep()
    assert len(plans) >= 4
    assert [each for each in plans if not re.search(r"INDEX (call_unfinished|call_overdue) ", each)] == []
