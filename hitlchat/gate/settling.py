"""Settling: callers wait for the end of a call, and the sweeper ends abandoned ones.

Deadlines that pass, processes that die, and unknown outcomes that a person settles are here too.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final, Literal
from uuid import UUID

from hitlchat.accounts.roles import may_administer
from hitlchat.base import lease
from hitlchat.base.background import Waker
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.gate import decide, perform, stopping
from hitlchat.gate.actor import Actor
from hitlchat.gate.decide import AlreadySettled, NoSuchApproval
from hitlchat.gate.grants import giving
from hitlchat.gate.models import IsUnfinished, ToolCall
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.transition import StaleCall, move, withdraw

LOOK_AGAIN_SECONDS = 1.0

_waiters: dict[UUID, set[Waker]] = defaultdict(set)

LONGEST_REMARK: Final = 500

# Younger ones are on their way in the process that moved them.
GRACE = timedelta(seconds=3)
# An allowed call that belongs to no turn has a caller waiting for it; after this long the caller is gone.
ABANDONED = timedelta(seconds=60)
GONE = "whoever asked for it has gone"
NO_WORKER = "no worker was free while its caller waited"


class BadRemark(ValueError):
    """The remark cannot be kept as it was written; the message says why."""


async def settled(call_id: UUID, seconds: float) -> ToolCall:
    """Wait until the call is settled, `seconds` at most, and return it. Starts it if no server loop has."""
    with _waiting(call_id) as event:
        if (claimed := await perform.start(call_id, seconds)) is not None:
            await perform.execute(claimed)
        return await _wait(call_id, event, seconds, lambda pk: ToolCall.objects.get(pk=pk))


async def watched(call_id: UUID, seconds: float, *related: str) -> ToolCall:
    """Wait as `settled` does, for callers that may be cancelled: a task of the server's loop executes the call.

    `related`: what is to be read along with it.
    """
    with _waiting(call_id) as event:
        return await _wait(call_id, event, seconds, partial(_begun, related))


def on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    if status in SETTLED:
        for event in tuple(_waiters.get(call_id, ())):
            event.wake()


def resolve(call_id: UUID, outcome: Literal["done", "failed"], actor: Actor, *, remark: str = "") -> ToolCall:
    """Mark an unknown call as done or failed; its requester and administrators may. `remark`: how they know, for the
    record. NoSuchApproval: not theirs. AlreadySettled: no longer unknown. BadRemark.
    """
    call = ToolCall.objects.filter(pk=call_id).first()
    person = actor.person
    if call is None or person is None or not (call.caller_id == person.pk or may_administer(person)):
        raise NoSuchApproval("There is no call with this id for you to resolve.")
    if call.status != Status.UNKNOWN:
        raise AlreadySettled(call)
    marked = {"kind": "marked", "message": "It did not happen, as a person found out afterwards.", "line": None}
    data: dict[str, Any] = {"marked": outcome} | ({"remark": text} if (text := checked(remark)) else {})
    try:
        if outcome == "done":
            return move(call, Status.SUCCEEDED, actor=actor, data=data)
        return move(call, Status.FAILED, actor=actor, data=data, error=marked)
    except StaleCall:
        raise AlreadySettled(ToolCall.objects.get(pk=call_id)) from None


def checked(remark: str) -> str:
    """Return the remark as it is stored. Raises: BadRemark, where it is too long, since nothing is cut."""
    remark = remark.replace("\r\n", "\n").strip()
    if len(remark) > LONGEST_REMARK:
        raise BadRemark(f"The note has {len(remark):,} characters; at most {LONGEST_REMARK} are allowed.")
    if remark != storable(remark):
        raise BadRemark("The note has a character that cannot be stored, such as U+0000.")
    return remark


def sweep() -> None:
    decide.expire_overdue()
    giving.void_changed()
    perform.lose_overdue()
    stopping.look()
    left = ToolCall.objects.filter(IsUnfinished(), lease.is_older(GRACE), status__in=stopping.READY)
    for call_id in left.exclude(status=Status.ALLOWED, turn_id=None).values_list("pk", flat=True)[:100]:
        perform.begin(call_id)
    abandoned = ToolCall.objects.filter(IsUnfinished(), lease.is_older(ABANDONED), status=Status.ALLOWED, turn_id=None)
    for call in abandoned[:100]:
        withdraw(call, NO_WORKER if stopping.queued_since(call) else GONE)


@contextmanager
def _waiting(call_id: UUID) -> Iterator[Waker]:
    """Give an event that is set once the call is settled."""
    event = Waker()
    _waiters[call_id].add(event)
    try:
        yield event
    finally:
        _waiters[call_id].discard(event)
        if not _waiters[call_id]:
            del _waiters[call_id]


async def _wait(call_id: UUID, event: asyncio.Event, seconds: float, read: Callable[[UUID], ToolCall]) -> ToolCall:
    now = asyncio.get_running_loop().time
    deadline = now() + seconds
    # What is underway here is not over before the event tells.
    if stopping.is_running(call_id):
        await _woken(event, seconds)
    while True:
        call = await in_db(read)(call_id)
        left = deadline - now()
        if call.settled or left <= 0:
            return call
        await _woken(event, left)


async def _woken(event: asyncio.Event, seconds: float) -> None:
    # Another process may settle it, which no event of this one tells.
    with suppress(TimeoutError):
        async with asyncio.timeout(min(seconds, LOOK_AGAIN_SECONDS)):
            await event.wait()


def _begun(related: tuple[str, ...], call_id: UUID) -> ToolCall:
    """Return the call as it is, and start it if it is ready."""
    call = ToolCall.objects.select_related(*(related or [None])).get(pk=call_id)
    if call.status in stopping.READY:
        perform.begin(call_id)
    return call
