"""The states of a call and the moves between them."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent, Tool, ToolCall
from hitlchat.gate.status import ENTRIES, MOVES, SETTLED, STARTED, Status
from hitlchat.gate.transition import IllegalMove, StaleCall, enter, move
from tests.gate.asking import status

TERMINAL = {
    *(Status.REJECTED, Status.REFUSED, Status.DECLINED, Status.ANSWERED, Status.EXPIRED, Status.WITHDRAWN),
    *(Status.SUCCEEDED, Status.FAILED),
}
ILLEGAL = [(start, to) for start in Status for to in Status if to not in MOVES[start]]


def test_every_status_has_a_row() -> None:
    assert set(MOVES) == set(Status)


def test_nothing_leads_out_of_an_end() -> None:
    assert {status for status, onward in MOVES.items() if not onward} == TERMINAL
    assert TERMINAL | {Status.UNKNOWN} == SETTLED


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_only_an_approved_or_allowed_call_can_start() -> None:
    assert {status for status, onward in MOVES.items() if Status.EXECUTING in onward} == {
        Status.APPROVED,
        Status.ALLOWED,
    }
    assert {status for status, onward in MOVES.items() if Status.APPROVED in onward} == {Status.WAITING}


@pytest.mark.guarantee("gate:at-most-once")
def test_nothing_that_started_can_start_again() -> None:
    reachable = set(STARTED)
    for _ in Status:
        reachable |= {to for start in reachable for to in MOVES[start]}
    assert reachable == STARTED


def test_an_illegal_move_raises_and_leaves_the_row(subtests: pytest.Subtests, bob: User, tool: Tool) -> None:
    for start, to in ILLEGAL:
        with subtests.test(start=start):
            call = stored(start, bob, tool)
            with pytest.raises(IllegalMove, match=rf"cannot go from '{start.value}' to '{to.value}'"):
                move(call, to, actor=SYSTEM)
            assert status(call) == start == call.status
            assert not AuditEvent.objects.exists()


def test_a_call_cannot_begin_in_the_middle_of_its_life(subtests: pytest.Subtests, bob: User, tool: Tool) -> None:
    for entry in sorted(set(Status) - ENTRIES):
        with subtests.test(entry=entry):
            with pytest.raises(IllegalMove, match="cannot begin as"):
                enter(ToolCall(tool=tool, tool_name=tool.name, caller=bob, caller_kind="chat"), entry, actor=SYSTEM)
            assert not ToolCall.objects.exists()
            assert not AuditEvent.objects.exists()


def test_a_move_from_a_status_that_is_gone_is_refused(bob: User, tool: Tool) -> None:
    call = stored(Status.WAITING, bob, tool)
    stale = ToolCall.objects.get(pk=call.pk)
    move(call, Status.DECLINED, actor=SYSTEM)
    with pytest.raises(StaleCall):
        move(stale, Status.APPROVED, actor=SYSTEM)
    assert status(call) == Status.DECLINED


def stored(status: Status, user: User, tool: Tool) -> ToolCall:
    return ToolCall.objects.create(
        tool=tool, tool_name=tool.name, caller=user, caller_kind="chat", status=status, deadline=timezone.now()
    )
