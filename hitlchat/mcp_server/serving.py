"""The MCP server as an ASGI application; bodies that readers could take for different things never reach the SDK."""

import asyncio
import contextvars
import json
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from hitlchat.base import canonical
from hitlchat.mcp_server.allotment import IDLE_SECONDS, Allotment
from hitlchat.mcp_server.door import GONE, Door
from hitlchat.mcp_server.server import make_server
from hitlchat.mcp_server.streams import Asgi, is_stream

# Reading what is longer takes long enough to keep others waiting.
SMALL = 64 * 1024
MOST_DIGITS = 18


class Strict:
    """Before the SDK: a POST whose body is no JSON in the strict sense (duplicate keys, NaN) is refused with 400, and
    has no effect. What is longer than `largest`, in bytes, is left to the SDK, which refuses it unread."""

    def __init__(self, application: Asgi, largest: int) -> None:
        self._application, self._largest = application, largest

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "POST" and not self._is_too_long(scope):
            events, body = await self._read(receive)
            if body is not None and (why := await _wrong(body)):
                await _refuse(send, why)
                return
            receive = _again(events, receive)
        await self._application(scope, receive, send)

    def _is_too_long(self, scope: Any) -> bool:
        said = dict(scope["headers"]).get(b"content-length", b"")
        return said.isdigit() and (len(said) > MOST_DIGITS or int(said) > self._largest)

    async def _read(self, receive: Any) -> tuple[list[Any], bytes | None]:
        """What has come, and the body if it is all there."""
        events: list[Any] = []
        body = bytearray()
        while len(body) <= self._largest:
            events.append(event := await receive())
            if event["type"] != "http.request":
                return events, None
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        return events, bytes(body) if len(body) <= self._largest else None


async def _wrong(body: bytes) -> str:
    return _said(body) if len(body) <= SMALL else await asyncio.to_thread(_said, body)


def _said(body: bytes) -> str:
    try:
        canonical.loads(body)
    except canonical.NotJson as error:
        return str(error)
    return ""


def _again(events: list[Any], receive: Any) -> Any:
    left = iter(events)

    async def received() -> Any:
        event = next(left, None)
        return event if event is not None else await receive()

    return received


async def _refuse(send: Any, why: str) -> None:
    error = {"code": types.PARSE_ERROR, "message": f"Parse error: {why}"}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})


PATH = "/mcp"
# Arguments may have 256 KiB, and JSON may spell a character in six.
LARGEST_BODY = 2 * 2**20
MOST_SESSIONS = 500
ENDING_SECONDS = 3.0


class Serving:
    """The SDK's manager, which has to be entered and left in one task of the loop that serves; Daphne has no hook for
    that (it sends no lifespan)."""

    def __init__(self, make: Callable[[], StreamableHTTPSessionManager]) -> None:
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready: asyncio.Future[Asgi] | None = None
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        application = await self._application()
        gone = asyncio.Event()
        await application({**scope, GONE: gone}, _watching(receive, gone), _flushing(send))

    async def end(self) -> None:
        """Close all sessions, within bounded time."""
        if self._task is not None and not self._task.done() and self._loop is asyncio.get_running_loop():
            self._over.set()
            await asyncio.wait({self._task}, timeout=ENDING_SECONDS)

    async def _application(self) -> Asgi:
        loop = asyncio.get_running_loop()
        if self._loop is not loop or self._ready is None:
            self._loop, self._ready, self._over = loop, loop.create_future(), asyncio.Event()
            # Without the context of whoever happens to come first.
            self._task = loop.create_task(self._own(self._ready, self._over), context=contextvars.Context())
        return await asyncio.shield(self._ready)

    async def _own(self, ready: "asyncio.Future[Asgi]", over: asyncio.Event) -> None:
        try:
            made = self._make()
            async with made.run():
                ready.set_result(Allotment(Strict(made.handle_request, LARGEST_BODY)))
                await over.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise
        finally:
            # A manager runs once: the next request begins with another one.
            if self._ready is ready:
                self._loop = None


def _watching(receive: Any, gone: asyncio.Event) -> Any:
    async def watched() -> Any:
        event = await receive()
        if event["type"] == "http.disconnect":
            gone.set()
        return event

    return watched


def _flushing(send: Any) -> Any:
    """Daphne keeps the head of a response until there is some of its body, which a stream may not have for long."""

    async def flushed(event: Any) -> None:
        await send(event)
        if event["type"] == "http.response.start" and is_stream(event):
            await send({"type": "http.response.body", "body": b"", "more_body": True})

    return flushed


def manager() -> StreamableHTTPSessionManager:
    return StreamableHTTPSessionManager(
        app=make_server(),
        max_request_body_size=LARGEST_BODY,
        max_sessions=MOST_SESSIONS,
        session_idle_timeout=IDLE_SECONDS,
    )


serving = Serving(manager)
application = Door(serving)
