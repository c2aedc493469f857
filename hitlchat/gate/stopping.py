"""The work of this process on calls: their turn to run, stopping those that execute, withdrawing those that do not yet.

A source with few places to run in gives a call one before the call is claimed. A call that finds none stays allowed or
approved, with its yes unused, and takes its turn, also after a restart. It is withdrawn when it found none for
TOOL_QUEUE_SECONDS.

A stop is a request, which reaches the source in whichever process the call executes: sources that cannot stop keep
running, and one that can says what it knows of what was done.
"""

import asyncio
import time
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.dispatch import Signal
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base.background import Waker, attempt, background
from hitlchat.base.database import after_commit, in_db
from hitlchat.base.moments import span
from hitlchat.base.problems import NotFound
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.gate import oversight
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.sources import ANYWHERE, Place, PlacingSource, delegating, hears_of_stopping
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note, remark, withdraw

REQUESTED = "call.stop_requested"

# Sent after the commit with call_id, conversation_id and turn_id.
stop_requested = Signal()

T = TypeVar("T")

NOT_STARTED = (Status.WAITING, Status.ALLOWED, Status.APPROVED)
QUEUED: Final = "call.queued"
BEGINNINGS: Final = ("call.allowed", "call.approved")
READY: Final = (Status.ALLOWED, Status.APPROVED)
WAITS: Final = gettext_noop("Waiting for a free worker.")
STARTS: Final = gettext_noop("Starting soon.")
# How soon a call in the queue notices that its server is ending.
SLICE_SECONDS: Final = 1.0
# A call that has been in the queue for too long, as when no server ran, still gets this long.
LEAST_SECONDS: Final = 5.0


@dataclass(eq=False)
class Work:
    """The work of this process on one call that waits for its turn here, is claimed, or executes.

    `place`: where it runs, once it is claimed; `since`: when its lease was taken, by a clock that nobody sets.
    `stop`: set once the call is to stop; there is one while it executes. `has_returned`: its result is being recorded.
    """

    place: Place | None = None
    since: float = 0.0
    stop: Waker | None = None
    has_returned: bool = False


# By the call; each is good for one execution.
works: Final[dict[UUID, Work]] = {}


class NotYet(Exception):
    """The call cannot start at once."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(f"call {call.pk} cannot start at once")
        self.call = call


class NoPlace(NotYet):
    """It has to wait for a place."""


class NoSuchCall(NotFound):
    """No call has this id, or it is someone else's."""


def executing() -> tuple[UUID, ...]:
    """Return the calls that this process executes."""
    return tuple(call_id for call_id, work in [*works.items()] if work.stop is not None)


def is_running(call_id: UUID) -> bool:
    """Return whether this process has claimed the call, and its tool has not returned."""
    work = works.get(call_id)
    return work is not None and work.place is not None and not work.has_returned


def place_now(source: object, call: ToolCall) -> Place:
    """A place for `call`. NoPlace."""
    if not isinstance(source, PlacingSource):
        return ANYWHERE
    if (place := source.place_now(call)) is None:
        raise NoPlace(call)
    return place


async def turn(source: object, call: ToolCall, seconds: float | None) -> Place | None:
    """A place for `call`, once it is its turn; None if that takes longer than `seconds`, or if the server ends.

    Without `seconds` the call is withdrawn when it has waited for too long.
    """
    try:
        return place_now(source, call)
    except NoPlace:
        since = time.monotonic()
    assert isinstance(source, PlacingSource)
    left = await in_db(_queued)(call)
    end = since + (left if seconds is None else min(seconds, left))
    while not background.leaving and (remaining := end - time.monotonic()) > 0:
        if (place := await source.next_place(call, min(remaining, SLICE_SECONDS), since)) is not None:
            return place
    if seconds is None and not background.leaving:
        await in_db(withdraw)(call, translatable(f"no worker was free for {span(settings.TOOL_QUEUE_SECONDS)}"))
    return None


def queued_since(call: ToolCall) -> datetime | None:
    """Return since when a call that may start waits for a place; None if it does not."""
    if call.status not in READY:
        return None
    last = call.events.filter(name__in=(QUEUED, *BEGINNINGS)).last()
    return last.at if last is not None and last.name == QUEUED else None


def outlook(call: ToolCall) -> str:
    """Return when a call that may start does so, in words."""
    return WAITS if queued_since(call) else STARTS


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
    """Return whether the call executes in a source that can stop it."""
    return call.status == Status.EXECUTING and hears_of_stopping(call.source)


def is_requested(call: ToolCall) -> bool:
    return _requests(call.pk).exists()


def requested_by(call: ToolCall) -> str:
    """The name of who wished it first; empty if nobody did."""
    event = _requests(call.pk).first()
    return event.actor.get_username() if event and event.actor else ""


def request(call_id: UUID, actor: Actor) -> bool:
    """Ask a call of this person to stop; False if it does not execute.

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
    """Withdraw calls that have not started and were asked about under rules that have changed since."""
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
            # Answered just then. Not if it was asked about again, or passed on: then nothing has come of it yet.
            is_open = Q(round__gt=call.round) | ~Q(decider_group=call.decider_group)
            _withdraw(ToolCall.objects.filter(is_open, pk=call.pk), actor, why)


def _queued(call: ToolCall) -> float:
    """Put on record that it waits, once; how many seconds it has left."""
    since = queued_since(call)
    if since is None:
        remark(call, QUEUED, actor=SYSTEM)
        since = timezone.now()
    return max(LEAST_SECONDS, (since + timedelta(seconds=settings.TOOL_QUEUE_SECONDS) - timezone.now()).total_seconds())


@compiled
def _requests(call_id: UUID) -> QuerySet[AuditEvent]:
    return AuditEvent.objects.filter(call_id=call_id, name=REQUESTED).select_related("actor").order_by("pk")
