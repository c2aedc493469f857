"""Clients that take nothing of what is sent to them: whoever sends waits for them, and not for ever. Daphne alone keeps
in memory whatever is sent.
"""

import asyncio
import socket
from typing import Any

from django.conf import settings
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer  # type: ignore[import-untyped]

# Also ends what was sent whole and is never read. Not every system has it.
USER_TIMEOUT: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)


@implementer(IPushProducer)
class Outflow:
    """Tells whether a connection takes more, as Twisted says."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()

    def pauseProducing(self) -> None:  # noqa: N802
        self._open.clear()

    def resumeProducing(self) -> None:  # noqa: N802
        self._open.set()

    def stopProducing(self) -> None:  # noqa: N802
        """The connection is lost: there is nothing to wait for."""
        self._open.set()

    async def ready(self) -> bool:
        """False if it took nothing for too long."""
        if self._open.is_set():
            return True
        try:
            await asyncio.wait_for(self._open.wait(), settings.STALL_SECONDS)
        except TimeoutError:
            return False
        return True


class Patient:
    """Mixed into Daphne's request: its answer is written as fast as its client reads."""

    _outflow: Outflow | None = None

    def handle_reply(self: Any, message: dict[str, Any]) -> None:
        if self._outflow is None and message["type"] == "http.response.start" and self.channel is not None:
            self._outflow = Outflow()
            self.registerProducer(self._outflow, streaming=True)
            _give_up_in_time(self.channel.transport)
        super().handle_reply(message)  # type: ignore[misc]

    def finish(self: Any) -> None:
        if self._outflow is not None and self.channel is not None:
            self.unregisterProducer()
        super().finish()  # type: ignore[misc]

    async def taken(self: Any) -> None:
        """Wait until the client may be sent more; one that takes nothing is given up."""
        if self._outflow is None or self.finished or self.channel is None:
            return
        if not await self._outflow.ready() and self.channel is not None:
            self.channel.forceAbortClient()


def _give_up_in_time(transport: Any) -> None:
    handle = transport.getHandle()
    if USER_TIMEOUT is not None and isinstance(handle, socket.socket):
        handle.setsockopt(socket.IPPROTO_TCP, USER_TIMEOUT, settings.STALL_SECONDS * 1000)
