"""The demo model as a Chat Completions server: a small ASGI application inside our own."""

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

from hitlchat.agent.demo_model.reply import answer
from hitlchat.agent.demo_model.sentences import Prompt
from hitlchat.agent.demo_model.wire import as_sse
from hitlchat.agent.model_client import DEMO_PATH, demo_key
from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool

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


def prompts_of_tools() -> dict[str, Prompt]:
    """Return the approval prompts of all published tools that have one, by the tools' names."""
    rows = (
        Tool.objects.filter(published=True)
        .exclude(prompt_template="")
        .values_list("name", "prompt_template", "example")
    )
    return {name: Prompt(template, example if isinstance(example, dict) else None) for name, template, example in rows}


async def _stream(send: Send, request: dict[str, Any]) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    prompts = await in_db(prompts_of_tools)()
    for piece in as_sse(answer(request, prompts)):
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
