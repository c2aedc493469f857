"""Calls that come to nothing because whoever asked went away, or the tool did."""

from contextlib import suppress
from uuid import UUID

from django.db.models import QuerySet

from hitlchat.gate import oversight
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import StaleCall, move

NOT_STARTED = (Status.WAITING, Status.ALLOWED, Status.APPROVED)


def withdraw_turn(turn_id: UUID, *, actor: Actor, why: str) -> None:
    """Withdraw what has not started of one turn."""
    _withdraw(ToolCall.objects.filter(turn_id=turn_id), actor, why)


def withdraw_conversation(conversation_id: UUID, *, actor: Actor, why: str) -> None:
    """Withdraw what has not started of one conversation, because it was deleted."""
    _withdraw(ToolCall.objects.filter(conversation_id=conversation_id), actor, why)


def withdraw_tool(tool_id: UUID, *, actor: Actor, why: str) -> None:
    """Withdraw what has not started of one tool, because it changed or is gone."""
    _withdraw(ToolCall.objects.filter(tool_id=tool_id), actor, why)


def withdraw_allowed(tool_id: UUID, *, actor: Actor, why: str) -> None:
    """Withdraw what a rule allowed that is no longer in force; what a person approved stands."""
    _withdraw(ToolCall.objects.filter(tool_id=tool_id, status=Status.ALLOWED), actor, why)


def withdraw_asked_otherwise(tool_id: UUID, *, actor: Actor) -> None:
    """Withdraw what was asked about, and has not started, under other rules of who decides than stand now."""
    _withdraw(ToolCall.objects.filter(oversight.asked_otherwise(tool_id)), actor, oversight.CHANGED)


def withdraw_call(call_id: UUID, *, actor: Actor, why: str) -> None:
    """Withdraw one call if it has not started."""
    _withdraw(ToolCall.objects.filter(pk=call_id), actor, why)


def withdraw_question(call_id: UUID, round: int, *, actor: Actor, why: str) -> None:  # noqa: A002
    """Withdraw one call if it waits in this round; what it was answered otherwise stands."""
    call = ToolCall.objects.filter(pk=call_id, status=Status.WAITING, round=round).first()
    if call is not None:
        with suppress(StaleCall):
            move(call, Status.WITHDRAWN, actor=actor, data={"reason": why}, reason=f"Not run: {why}.")


def _withdraw(calls: QuerySet[ToolCall], actor: Actor, why: str) -> None:
    for call in calls.filter(status__in=NOT_STARTED):
        try:
            move(call, Status.WITHDRAWN, actor=actor, data={"reason": why}, reason=f"Not run: {why}.")
        except StaleCall:
            # Answered just then. Not if it was asked about again: then nothing has come of it yet.
            _withdraw(ToolCall.objects.filter(pk=call.pk, round__gt=call.round), actor, why)
