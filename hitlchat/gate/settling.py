"""Waiting for a call to settle, for callers that answer with its result."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

from hitlchat.base.background import Waker
from hitlchat.base.database import in_db
from hitlchat.gate import perform, placing
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import SETTLED, Status

LOOK_AGAIN_SECONDS = 1.0

_waiters: dict[UUID, set[Waker]] = defaultdict(set)


async def settled(call_id: UUID, seconds: float) -> ToolCall:
    """The call once it is settled, or as it is after `seconds`. Starts it if no server loop has."""
    event = Waker()
    _waiters[call_id].add(event)
    try:
        if (claimed := await perform.start(call_id, seconds)) is not None:
            await perform.execute(claimed)
        return await _wait(call_id, event, seconds, _read)
    finally:
        _forget(call_id, event)


async def watched(call_id: UUID, seconds: float, *related: str) -> ToolCall:
    """Wait as `settled` does, for callers that may be cancelled.

    They may be: a task of the server's loop executes the call, never theirs.

    `related`: what is to be read along with it.
    """
    event = Waker()
    _waiters[call_id].add(event)
    try:
        return await _wait(call_id, event, seconds, partial(_begun, related))
    finally:
        _forget(call_id, event)


def _forget(call_id: UUID, event: Waker) -> None:
    _waiters[call_id].discard(event)
    if not _waiters[call_id]:
        del _waiters[call_id]


async def _wait(call_id: UUID, event: asyncio.Event, seconds: float, read: Callable[[UUID], ToolCall]) -> ToolCall:
    now = asyncio.get_running_loop().time
    deadline = now() + seconds
    # What is underway here is not over before the event tells.
    if perform.is_underway(call_id):
        await _told(event, seconds)
    while True:
        call = await in_db(read)(call_id)
        left = deadline - now()
        if call.settled or left <= 0:
            return call
        await _told(event, left)


async def _told(event: asyncio.Event, seconds: float) -> None:
    # Another process may settle it, which no event of this one tells.
    with suppress(TimeoutError):
        async with asyncio.timeout(min(seconds, LOOK_AGAIN_SECONDS)):
            await event.wait()


def _read(call_id: UUID) -> ToolCall:
    return ToolCall.objects.get(pk=call_id)


def _begun(related: tuple[str, ...], call_id: UUID) -> ToolCall:
    """The call as it is, and started if it is ready."""
    call = ToolCall.objects.select_related(*(related or [None])).get(pk=call_id)
    if call.status in placing.READY:
        perform.begin(call_id)
    return call


def on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    if status in SETTLED:
        for event in tuple(_waiters.get(call_id, ())):
            event.wake()
