"""Stopping: calls that execute are asked to stop, and those that have not started are withdrawn.

A stop is a request, which reaches the source in whichever process the call executes: sources that cannot stop keep
running, and one that can says what it knows of what was done.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.dispatch import Signal
from django.utils.translation import gettext_noop

from hitlchat.base.background import attempt
from hitlchat.base.database import after_commit
from hitlchat.base.problems import NotFound
from hitlchat.gate import oversight
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.placing import works
from hitlchat.gate.sources import delegating, hears_of_stopping
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note, withdraw

REQUESTED = "call.stop_requested"

# Sent after the commit with call_id, conversation_id and turn_id.
stop_requested = Signal()

T = TypeVar("T")

NOT_STARTED = (Status.WAITING, Status.ALLOWED, Status.APPROVED)


class NoSuchCall(NotFound):
    """No call has this id, or it is someone else's."""


def wish(call: ToolCall) -> asyncio.Event:
    """Return the event that is set once the call is to stop, for the source that executes it."""
    work = works.get(call.pk)
    return (work and work.stop) or asyncio.Event()


async def unless_stopped(call: ToolCall, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of work that ends for certain when cancelled, or None if it was ended so."""
    working, wished = asyncio.create_task(work), asyncio.create_task(wish(call).wait())
    try:
        await asyncio.wait({working, wished}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
        # It may have ended in the very moment.
        return None if working.cancelled() else working.result()
    finally:
        wished.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})


def can_stop(call: ToolCall) -> bool:
    """Return whether it executes, and its source would hear of it."""
    return call.status == Status.EXECUTING and hears_of_stopping(call.source)


def is_requested(call: ToolCall) -> bool:
    return call.events.filter(name=REQUESTED).exists()


def requested_by(call: ToolCall) -> str:
    """The name of who wished it first; empty if nobody did."""
    event = call.events.filter(name=REQUESTED).select_related("actor").first()
    return event.actor.get_username() if event and event.actor else ""


def request(call_id: UUID, actor: Actor) -> bool:
    """Ask a call to stop, as the person for whom it executes; False if it does not execute.

    Raises: NoSuchCall
    """
    call = ToolCall.objects.filter(pk=call_id, caller_id=actor.user_id).first()
    if call is None:
        raise NoSuchCall(gettext_noop("There is no call with this id that you can stop."))
    return bool(_request([call], actor))


def request_turn(turn_id: UUID, actor: Actor) -> None:
    _request(ToolCall.objects.filter(turn_id=turn_id), actor)


def request_grant(grant_id: UUID, actor: Actor) -> None:
    """Ask all that executes on a grant that was ended to stop."""
    _request(ToolCall.objects.filter(grant_id=grant_id), actor)


def look() -> None:
    """Find requests to stop that other processes recorded about calls that this one executes."""
    unaware = [call_id for call_id, work in [*works.items()] if work.stop is not None and not work.stop.is_set()]
    if not unaware:
        return
    for call_id in AuditEvent.objects.filter(call_id__in=unaware, name=REQUESTED).values_list("call_id", flat=True):
        _wake(call_id)


def withdraw_turn(turn_id: UUID, *, actor: Actor, why: str) -> None:
    _withdraw_each(ToolCall.objects.filter(turn_id=turn_id), actor, why)


def withdraw_conversation(conversation_id: UUID, *, actor: Actor, why: str) -> None:
    _withdraw_each(ToolCall.objects.filter(conversation_id=conversation_id), actor, why)


def withdraw_tool(tool_id: UUID, *, actor: Actor, why: str) -> None:
    _withdraw(ToolCall.objects.filter(tool_id=tool_id), actor, why)


def withdraw_allowed(tool_id: UUID, *, actor: Actor, why: str) -> None:
    """Withdraw what a rule allowed that is no longer in force; what a person approved stands."""
    _withdraw(ToolCall.objects.filter(tool_id=tool_id, status=Status.ALLOWED), actor, why)


def withdraw_asked_otherwise(tool_id: UUID, *, actor: Actor) -> None:
    """Withdraw what was asked about, and has not started, under other rules of who decides than stand now."""
    _withdraw(ToolCall.objects.filter(oversight.asked_otherwise(tool_id)), actor, oversight.CHANGED)


def withdraw_call(call_id: UUID, *, actor: Actor, why: str) -> None:
    _withdraw(ToolCall.objects.filter(pk=call_id), actor, why)


def withdraw_question(call_id: UUID, round: int, *, actor: Actor, why: str) -> None:  # noqa: A002
    """Withdraw one call if it waits in this round; what it was answered otherwise stands."""
    call = ToolCall.objects.filter(pk=call_id, status=Status.WAITING, round=round).first()
    if call is not None:
        withdraw(call, why, actor=actor)


def _request(calls: Iterable[ToolCall], actor: Actor) -> int:
    running = [call for call in calls if call.status == Status.EXECUTING]
    for call in running:
        agents = delegating(call.source)
        with transaction.atomic():
            if agents is None:
                # Of two wishes at a time the second finds the first.
                list(ToolCall.objects.select_for_update().filter(pk=call.pk))
            if agents is not None or not is_requested(call):
                note(call.pk, REQUESTED, actor=actor)
            if agents is not None:
                # It ends with all below it. The work is locked before the call, as where the work ends by itself.
                agents.recall(call, actor)
            after_commit(_tell, call.pk, conversation_id=call.conversation_id, turn_id=call.turn_id)
    return len(running)


def _tell(call_id: UUID, **more: Any) -> None:
    _wake(call_id)
    stop_requested.send_robust(sender=ToolCall, call_id=call_id, **more)


def _wake(call_id: UUID | None) -> None:
    if call_id and (work := works.get(call_id)) is not None and work.stop is not None:
        work.stop.wake()


def _withdraw_each(calls: QuerySet[ToolCall], actor: Actor, why: str) -> None:
    """Withdraw each, whatever becomes of the others: whoever ends a run or a conversation must be able to."""
    for pk in list(calls.filter(status__in=NOT_STARTED).values_list("pk", flat=True)):
        attempt(withdraw_call, pk, actor=actor, why=why)


def _withdraw(calls: QuerySet[ToolCall], actor: Actor, why: str) -> None:
    for call in calls.filter(status__in=NOT_STARTED):
        if not withdraw(call, why, actor=actor):
            # Answered just then. Not if it was asked about again: then nothing has come of it yet.
            _withdraw(ToolCall.objects.filter(pk=call.pk, round__gt=call.round), actor, why)
