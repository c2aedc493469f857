"""The demo model as a Chat Completions server: a small ASGI application inside our own."""

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

from hitlchat.agent.demo_model import answer, as_sse
from hitlchat.agent.endpoint import DEMO_PATH, demo_key

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

LARGEST_BODY = 16 * 2**20
# About the pace of a real model, so that what streams can be seen to stream.
SECONDS_A_PIECE = 0.012


async def demo_model(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """POST /chat/completions below the demo path, for this installation's own processes only."""
    if scope["path"] != f"{DEMO_PATH}/chat/completions" or scope["method"] != "POST":
        await _error(send, 404, "There is only POST /chat/completions here.")
        return
    given = dict(scope["headers"]).get(b"authorization", b"")
    if not hmac.compare_digest(given, b"Bearer " + demo_key().encode()):
        await _error(send, 401, "The demo model answers only to the hitlchat that it is part of.")
        return
    try:
        request = json.loads(await _body(receive))
    except (ValueError, OverflowError) as error:
        await _error(send, 400, f"The request cannot be read: {error}")
        return
    await _stream(send, request)


async def _stream(send: Send, request: dict[str, Any]) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for piece in as_sse(answer(request)):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(SECONDS_A_PIECE)
    await send({"type": "http.response.body", "body": b""})


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ValueError("the client went away")
        parts.append(event.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            raise OverflowError("it is larger than 16 MiB")
        more = event.get("more_body", False)
    return b"".join(parts)


async def _error(send: Send, status: int, message: str) -> None:
    headers = [(b"content-type", b"application/json")]
    body = json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode()
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
