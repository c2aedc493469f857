"""A call that executes is told to stop: its source hears of it, in whichever process it executes.

That is a wish, and no outcome: a source that cannot stop goes on, and one that can says what it knows of what was done.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django.db import transaction
from django.dispatch import Signal

from hitlchat.base.background import Waker
from hitlchat.base.problems import NotFound
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.sources import hears_of_stopping
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note

REQUESTED = "call.stop_requested"

# Sent after the commit with call_id, conversation_id and turn_id.
stop_requested = Signal()

T = TypeVar("T")

# What this process executes.
_executing: dict[UUID, Waker] = {}


class NoSuchCall(NotFound):
    """No call has this id, or it is someone else's."""


@contextmanager
def hearing(call_id: UUID) -> Iterator[None]:
    """While this process executes the call, it hears whether the call is to stop."""
    _executing[call_id] = Waker()
    try:
        yield
    finally:
        del _executing[call_id]


def executing() -> tuple[UUID, ...]:
    return tuple(_executing)


def wish(call: ToolCall) -> asyncio.Event:
    """Return an event, for a source, that is set once the call that it executes is to stop."""
    return _executing.get(call.pk) or asyncio.Event()


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
    """Tell a call to stop, as the one on whose behalf it executes; False if it does not execute. NoSuchCall."""
    call = ToolCall.objects.filter(pk=call_id, caller_id=actor.user_id).first()
    if call is None:
        raise NoSuchCall("There is no call with this id for you to stop.")
    return bool(_request([call], actor))


def request_turn(turn_id: UUID, actor: Actor) -> None:
    """The same for all that executes of one turn."""
    _request(ToolCall.objects.filter(turn_id=turn_id), actor)


def request_grant(grant_id: UUID, actor: Actor) -> None:
    """The same for all that executes on a grant that was ended."""
    _request(ToolCall.objects.filter(grant_id=grant_id), actor)


def _request(calls: Iterable[ToolCall], actor: Actor) -> int:
    told = [call for call in calls if call.status == Status.EXECUTING]
    for call in told:
        with transaction.atomic():
            # Of two wishes at a time the second finds the first.
            list(ToolCall.objects.select_for_update().filter(pk=call.pk))
            if not is_requested(call):
                note(call.pk, REQUESTED, actor=actor)
            more = {"conversation_id": call.conversation_id, "turn_id": call.turn_id}
            transaction.on_commit(partial(_tell, call.pk, **more), robust=True)
    return len(told)


def look() -> None:
    """Look for wishes that other processes were told, about what this one executes."""
    unaware = [call_id for call_id, waker in list(_executing.items()) if not waker.is_set()]
    if not unaware:
        return
    for call_id in AuditEvent.objects.filter(call_id__in=unaware, name=REQUESTED).values_list("call_id", flat=True):
        _wake(call_id)


def _tell(call_id: UUID, **more: Any) -> None:
    _wake(call_id)
    stop_requested.send_robust(sender=ToolCall, call_id=call_id, **more)


def _wake(call_id: UUID | None) -> None:
    if call_id and (waker := _executing.get(call_id)) is not None:
        waker.wake()
