"""Many at once: one outcome, one execution. Some of the races are forced, at the statement where they would be lost."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.gate import decide, perform, stopping
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.decide import AlreadySettled
from hitlchat.gate.models import Decision, Tool, ToolCall
from hitlchat.gate.settling import sweep
from hitlchat.gate.sources import ToolResult
from hitlchat.gate.status import Status
from hitlchat.gate.transition import StaleCall, move
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, approved, ask, events, fresh, say_yes, status
from tests.gate.racing import MEETING, meanwhile, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("row locks tell two at a time apart")]

MANY = [
    pytest.param(50, False, id="50 at once", marks=pytest.mark.slow("fifty threads")),
    pytest.param(MEETING, True, id="all have read it"),
]
YES_AND_NO = (decide.approve, decide.decline)


def answers(user: User, call: ToolCall, count: int) -> list[Any]:
    approval, actor = approval_of(call).pk, signed_in(user)
    return [partial(YES_AND_NO[number % 2], approval, actor) for number in range(count)]


@pytest.mark.guarantee("gate:one-outcome")
@pytest.mark.parametrize("count,forced", MANY)
def test_of_many_answers_one_counts_and_the_others_are_told(
    count: int, forced: bool, bob: User, waiting: ToolCall
) -> None:
    ends = together(*answers(bob, waiting, count), meet_at_first_write=forced)
    late = [end for end in ends if isinstance(end, AlreadySettled)]
    decision = Decision.objects.get()
    outcome = Status.APPROVED if decision.verdict == "approve" else Status.DECLINED
    assert len(late) == count - 1
    assert status(waiting) == outcome
    assert {each.call.status for each in late} == {outcome}
    assert events(waiting) == ["call.waiting", f"call.{outcome.value}"]


@pytest.mark.guarantee("gate:one-outcome")
def test_of_answer_and_withdrawal_one_counts(bob: User, tool: Tool, waiting: ToolCall) -> None:
    stopped = partial(stopping.withdraw_tool, tool.pk, actor=SYSTEM, why="the run was stopped")
    together(*answers(bob, waiting, MEETING - 2), stopped, stopped, meet_at_first_write=True)
    assert Decision.objects.count() == (status(waiting) != Status.WITHDRAWN)
    assert events(waiting) == ["call.waiting", f"call.{status(waiting).value}"]


@pytest.mark.guarantee("gate:one-outcome")
def test_of_many_edits_the_one_that_counts_is_the_one_that_runs(bob: User, waiting: ToolCall) -> None:
    approval, actor = approval_of(waiting).pk, signed_in(bob)
    edits = [{"text": str(number), "amount": number} for number in range(MEETING)]
    together(*(partial(decide.approve, approval, actor, edited=edit) for edit in edits), meet_at_first_write=True)
    assert Decision.objects.get().edited_arguments == fresh(waiting).arguments
    assert fresh(waiting).arguments in edits
    assert perform.claim(waiting.pk) is not None


@pytest.mark.guarantee("gate:at-most-once", "SR-12")
@pytest.mark.parametrize("count,forced", MANY)
def test_of_many_claims_one_gets_the_call(
    count: int, forced: bool, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = approved(bob, tool)
    ends = together(*[partial(perform.claim, call.pk)] * count, meet_at_first_write=forced)
    claimed = [end for end in ends if end is not None]
    assert [end.pk for end in claimed] == [call.pk]
    async_to_sync(perform.execute)(claimed[0])
    assert len(entered) == 1
    assert events(call) == ["call.waiting", "call.approved", "call.executing", "call.succeeded"]


@pytest.mark.guarantee("gate:at-most-once")
def test_a_call_is_withdrawn_or_started_but_not_both(bob: User, tool: Tool, entered: list[ToolCall]) -> None:
    call = approved(bob, tool)
    stop = partial(stopping.withdraw_tool, tool.pk, actor=SYSTEM, why="the run was stopped")
    ends = together(partial(perform.claim, call.pk), stop, meet_at_first_write=True)
    assert status(call) == (Status.WITHDRAWN if ends[0] is None else Status.EXECUTING)
    assert len(events(call)) == 3


@pytest.mark.guarantee("gate:at-most-once")
def test_sweepers_in_any_number_do_each_thing_once(bob: User, tool: Tool) -> None:
    lost, late = approved(bob, tool), ask(bob, tool)
    assert perform.claim(lost.pk) is not None
    ToolCall.objects.filter(pk=lost.pk).update(lease_until=lost.created_at)
    ToolCall.objects.filter(pk=late.pk).update(deadline=late.created_at)
    assert together(*[sweep] * MEETING) == [None] * MEETING
    assert (events(lost)[3:], events(late)[1:]) == (["call.unknown"], ["call.expired"])


@pytest.mark.guarantee("gate:one-outcome")
@pytest.mark.parametrize("first", ["decline", "withdraw", "expire"])
def test_a_yes_that_another_answer_overtakes_is_told_so(first: str, bob: User, tool: Tool, waiting: ToolCall) -> None:
    overtaking: dict[str, Any] = {
        "decline": partial(decide.decline, approval_of(waiting).pk, signed_in(bob)),
        "withdraw": partial(stopping.withdraw_tool, tool.pk, actor=SYSTEM, why="the run was stopped"),
        "expire": partial(ToolCall.objects.filter(pk=waiting.pk).update, deadline=waiting.created_at),
    }
    with meanwhile(overtaking[first]), pytest.raises(AlreadySettled) as late:
        say_yes(bob, waiting)
    assert late.value.call.status == status(waiting) != Status.APPROVED
    assert Decision.objects.filter(verdict="approve").count() == 0
    assert perform.claim(waiting.pk) is None


@pytest.mark.guarantee("gate:at-most-once")
@pytest.mark.parametrize("first", ["claim", "withdraw"])
def test_a_claim_that_is_overtaken_gets_nothing(first: str, bob: User, tool: Tool) -> None:
    call = approved(bob, tool)
    stop = partial(stopping.withdraw_tool, tool.pk, actor=SYSTEM, why="the run was stopped")
    with meanwhile(partial(perform.claim, call.pk) if first == "claim" else stop):
        assert perform.claim(call.pk) is None
    assert status(call) == (Status.EXECUTING if first == "claim" else Status.WITHDRAWN)
    assert len(events(call)) == 3


@pytest.mark.guarantee("gate:same-call", "SR-9")
def test_a_tool_changed_in_the_middle_of_a_claim_is_not_run(bob: User, make_tool: MakeTool) -> None:
    call = approved(bob, make_tool())
    with meanwhile(partial(Tool.objects.update, definition_hash="e" * 64)):
        claimed = perform.claim(call.pk)
    assert claimed is not None
    async_to_sync(perform.execute)(claimed)
    assert (status(call), fresh(call).result) == (Status.FAILED, None)
    assert "not run" in fresh(call).error["message"]


@pytest.mark.guarantee("gate:truth")
def test_a_result_that_comes_while_its_process_is_given_up_for_lost_is_kept(bob: User, tool: Tool) -> None:
    call = silent(bob, tool)
    with meanwhile(perform.lose_overdue):
        perform.settle(call.pk, ToolResult(value="done"))
    assert (status(call), fresh(call).result) == (Status.SUCCEEDED, "done")
    assert events(call)[3:] == ["call.unknown", "call.succeeded"]


@pytest.mark.guarantee("gate:truth")
def test_a_result_of_a_process_that_does_not_hold_the_call_is_not_kept(bob: User, tool: Tool) -> None:
    claimed = perform.claim(approved(bob, tool).pk)
    assert claimed is not None
    with meanwhile(partial(ToolCall.objects.filter(pk=claimed.pk).update, owner="another process")):
        async_to_sync(perform.execute)(claimed)
    assert (status(claimed), fresh(claimed).result) == (Status.EXECUTING, None)


@pytest.mark.guarantee("gate:truth")
@pytest.mark.parametrize("sign", ["a heartbeat", "the result"])
def test_a_process_that_gives_a_sign_of_life_just_then_is_not_lost(sign: str, bob: User, tool: Tool) -> None:
    call = silent(bob, tool)
    alive = partial(ToolCall.objects.filter(pk=call.pk).update, lease_until=timezone.now() + timedelta(hours=1))
    with meanwhile(alive if sign == "a heartbeat" else partial(perform.settle, call.pk, ToolResult(value="done"))):
        perform.lose_overdue()
    assert status(call) == (Status.EXECUTING if sign == "a heartbeat" else Status.SUCCEEDED)
    assert "call.unknown" not in events(call)


def silent(user: User, tool: Tool) -> ToolCall:
    """A call whose process has not been heard of since it claimed it."""
    call = approved(user, tool)
    perform.claim(call.pk)
    ToolCall.objects.filter(pk=call.pk).update(lease_until=call.created_at)
    return call


@pytest.mark.guarantee("gate:one-outcome")
def test_of_many_moves_read_at_the_same_moment_one_is_made(bob: User, tool: Tool) -> None:
    call = approved(bob, tool)
    copies = [fresh(call) for _ in range(MEETING)]
    moves = [partial(move, copy, Status.EXECUTING, actor=SYSTEM) for copy in copies]
    ends = together(*moves, meet_at_first_write=True)
    assert sum(isinstance(end, StaleCall) for end in ends) == MEETING - 1
    assert events(call).count("call.executing") == 1
