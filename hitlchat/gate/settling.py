"""Waiting for a call to settle, for callers that answer with its result."""

import asyncio
from collections import defaultdict
from typing import Any
from uuid import UUID

from hitlchat.gate import perform
from hitlchat.gate.crossing import in_db
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.transition import call_moved

LOOK_AGAIN_SECONDS = 1.0

_waiters: dict[UUID, set["_Waker"]] = defaultdict(set)


async def settled(call_id: UUID, seconds: float) -> ToolCall:
    """The call once it is settled, or as it is after `seconds`. Starts it if no server loop has."""
    event = _Waker(asyncio.get_running_loop())
    _waiters[call_id].add(event)
    try:
        if (claimed := await in_db(perform.claim)(call_id)) is not None:
            await perform.execute(claimed)
        return await _wait(call_id, event, seconds)
    finally:
        _waiters[call_id].discard(event)
        if not _waiters[call_id]:
            del _waiters[call_id]


async def _wait(call_id: UUID, event: asyncio.Event, seconds: float) -> ToolCall:
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        call = await in_db(ToolCall.objects.get)(pk=call_id)
        left = deadline - asyncio.get_running_loop().time()
        if call.settled or left <= 0:
            return call
        try:
            # Another process may settle it, which no event of this one tells.
            await asyncio.wait_for(event.wait(), min(left, LOOK_AGAIN_SECONDS))
        except TimeoutError:
            continue


class _Waker(asyncio.Event):
    """An event that can be set from the thread in which the transaction was committed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._home = loop

    def wake(self) -> None:
        if not self._home.is_closed():
            self._home.call_soon_threadsafe(self.set)


def _on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    if status in SETTLED:
        for event in tuple(_waiters.get(call_id, ())):
            event.wake()


call_moved.connect(_on_move, dispatch_uid="settling")
