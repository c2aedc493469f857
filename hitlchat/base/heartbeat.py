"""The answer to the heartbeat of pages, by which each notices that its connection is dead."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

PING: Final = "ping"
PONG: Final = {"type": "websocket.send", "text": "pong"}

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]


class Heartbeat:
    """Answers each ping of a websocket at once, however long `application` takes for earlier messages.

    So the answer says that earlier messages have arrived.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        arrived: asyncio.Queue[Any] = asyncio.Queue()
        reading = asyncio.create_task(_read(receive, send, arrived))
        try:
            await self._application(scope, arrived.get, send)
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


async def _read(receive: Receive, send: Send, arrived: asyncio.Queue[Any]) -> None:
    event: dict[str, Any] = {}
    while event.get("type") != "websocket.disconnect":
        event = await receive()
        if event.get("text") == PING:
            await send(PONG)
        else:
            arrived.put_nowait(event)
