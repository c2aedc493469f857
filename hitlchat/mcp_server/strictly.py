"""Bodies that readers could take for different things never reach the SDK, whose parser lets the last of two equal keys
win: a proxy, a log or a person may have read the first."""

import asyncio
import json
from typing import Any

import mcp_types as types

from hitlchat.base import canonical
from hitlchat.mcp_server.streams import Asgi

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
