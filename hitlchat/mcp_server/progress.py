"""How far a call is, told to a client that wants to know. Its numbers only rise, as MCP wants it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

import anyio
from mcp.server.session import ServerSession

from hitlchat.upstreams.client import Step
from hitlchat.upstreams.waking import progressed

_following: WeakValueDictionary[UUID, "Progress"] = WeakValueDictionary()


class Progress:
    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._told: float | None = None
        self._newest: Step | None = None
        self._came = asyncio.Event()

    @property
    def _so_far(self) -> float:
        return self._told or 0.0

    async def waits(self, message: str) -> None:
        """Nothing has happened but that time went by."""
        await self._tell(self._so_far + 1, None, message)

    def expect(self, call_id: UUID) -> None:
        """What this call tells from now on is for this client; passed on once `following` is entered."""
        _following[call_id] = self

    @asynccontextmanager
    async def following(self, call_id: UUID) -> AsyncIterator[None]:
        """Pass on what the tool of this call tells, if this process executes it."""
        self.expect(call_id)
        passing = asyncio.create_task(self._pass_on())
        try:
            yield
        finally:
            _following.pop(call_id, None)
            passing.cancel()
            with suppress(asyncio.CancelledError):
                await passing

    def notice(self, step: Step) -> None:
        self._newest = step
        self._came.set()

    async def _pass_on(self) -> None:
        before: float | None = None
        while await self._came.wait():
            self._came.clear()
            if self._newest is not None:
                # Behind what was told while it waited.
                before = self._so_far if before is None else before
                total = None if self._newest.total is None else before + self._newest.total
                await self._tell(before + self._newest.progress, total, self._newest.message or None)

    async def _tell(self, progress: float, total: float | None, message: str | None) -> None:
        # The first number may be 0: that the tool has begun.
        if self._told is not None and progress <= self._told:
            return
        self._told = progress
        # A client that has gone is noticed elsewhere.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._session.report_progress(progress, total, message)


def _on_step(*, call_id: UUID, step: Step, **_: Any) -> None:
    if (progress := _following.get(call_id)) is not None:
        progress.notice(step)


progressed.connect(_on_step, dispatch_uid="mcp_server")
