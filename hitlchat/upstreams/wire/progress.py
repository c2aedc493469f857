"""How far a call has come, passed on no faster than anyone can read."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from mcp.shared.dispatcher import ProgressFnT

from hitlchat.upstreams.wire.texts import told

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Step:
    """`total`: None if the server does not know. `message` is the server's word."""

    progress: float
    total: float | None = None
    message: str = ""


OnProgress = Callable[[Step], Awaitable[None]]


class Progress:
    """The newest step is passed on; older ones that nobody saw yet are left out. `hide`: takes secrets out."""

    def __init__(self, on_progress: OnProgress | None, hide: Callable[[str], str]) -> None:
        self._on_progress, self._hide = on_progress, hide
        self._newest: Step | None = None
        self._came = asyncio.Event()
        self._passing: asyncio.Task[None] | None = None

    @property
    def callback(self) -> ProgressFnT | None:
        return None if self._on_progress is None else self._noticed

    async def _noticed(self, progress: float, total: float | None, message: str | None) -> None:
        if math.isfinite(progress):
            known = total if total is not None and math.isfinite(total) else None
            self._newest = Step(progress, known, told(message or "", self._hide))
            self._came.set()

    async def _pass_on(self, tell: OnProgress) -> None:
        while await self._came.wait():
            self._came.clear()
            if self._newest is not None:
                await tell(self._newest)
            await asyncio.sleep(PAUSE_SECONDS)

    async def __aenter__(self) -> Self:
        if self._on_progress is not None:
            self._passing = asyncio.create_task(self._pass_on(self._on_progress))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._passing is not None:
            self._passing.cancel()
            await asyncio.wait({self._passing})
            if not self._passing.cancelled() and (failure := self._passing.exception()):
                logger.error("passing progress on failed", exc_info=failure)
