"""The demo model as a Chat Completions server: a small ASGI application inside our own."""

import asyncio
import hashlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from hitlchat.agent.demo_model.reply import reply
from hitlchat.agent.demo_model.sentences import Call, Prompt
from hitlchat.agent.model_client import DEMO_PATH, demo_key
from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Chunk = dict[str, Any]

MODEL = "demo"
PIECE = 16  # characters of arguments in one delta
# About the pace of a real model, so that what streams can be seen to stream.
SECONDS_A_PIECE = 0.012
_WORD = re.compile(r"\s*\S+|\s+$")


async def demo_model(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """POST /chat/completions below the demo path, for this installation's own processes only."""
    if scope["path"] != f"{DEMO_PATH}/chat/completions" or scope["method"] != "POST":
        await _error(send, 404, "Only POST /chat/completions is available here.")
        return
    key = dict(scope["headers"]).get(b"authorization", b"")
    if not hmac.compare_digest(key, b"Bearer " + demo_key().encode()):
        await _error(send, 401, "The demo model answers only its own hitlchat.")
        return
    # Its size is bounded for all of the application (asgi.py).
    body, event = bytearray(), dict[str, Any](more_body=True)
    while event.get("more_body"):
        event = await receive()
        if event["type"] == "http.disconnect":
            return
        body += event.get("body", b"")
    try:
        request = json.loads(body)
    except ValueError as error:
        await _error(send, 400, f"The request cannot be read: {error}")
        return
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for piece in as_sse(answer(request, await in_db(prompts_of_tools)())):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(SECONDS_A_PIECE)
    await send({"type": "http.response.body", "body": b""})


def prompts_of_tools() -> dict[str, Prompt]:
    """Return the approval prompts of all published tools that have one, by the tools' names."""
    tools = Tool.objects.filter(published=True).exclude(prompt_template="")
    rows = tools.values_list("name", "prompt_template", "example")
    return {name: Prompt(template, example if isinstance(example, dict) else None) for name, template, example in rows}


def answer(request: dict[str, Any], prompts: Mapping[str, Prompt]) -> Iterator[Chunk]:
    """Yield the chunks of the answer; ids come from the request alone, so that the same request has the same answer."""
    read = json.dumps([request.get("messages"), request.get("tools")], sort_keys=True, default=str)
    digest = hashlib.sha256(read.encode("utf-8", "replace")).hexdigest()
    given = reply(request, prompts)
    if isinstance(given, str):
        texts = [{"content": match[0]} for match in _WORD.finditer(given)]
        deltas, end = [{"role": "assistant", "content": ""}, *texts], "stop"
    else:
        deltas, end = list(_of_calls(given, digest)), "tool_calls"
    choices: list[dict[str, Any]] = [{"delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"delta": {}, "finish_reason": end})
    head = {"id": f"chatcmpl-{digest[:24]}", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    for choice in choices:
        yield {**head, "choices": [{"index": 0, "logprobs": None, **choice}]}
    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        usage = {"prompt_tokens": len(read.split()), "completion_tokens": len(choices)}
        yield {**head, "choices": [], "usage": {**usage, "total_tokens": sum(usage.values())}}


def as_sse(chunks: Iterable[Chunk]) -> Iterator[bytes]:
    """Yield `chunks` as server-sent events, with the mark that ends the stream."""
    for chunk in chunks:
        yield f"data: {json.dumps(chunk, ensure_ascii=True)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _of_calls(calls: list[Call], digest: str) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None}
    for index, call in enumerate(calls):
        head = {"index": index, "id": f"call_{digest[:16]}_{index}", "type": "function"}
        yield {"tool_calls": [head | {"function": {"name": call.tool.name, "arguments": ""}}]}
        written = json.dumps(call.arguments, ensure_ascii=False)
        for start in range(0, len(written), PIECE):
            yield {"tool_calls": [{"index": index, "function": {"arguments": written[start : start + PIECE]}}]}


async def _error(send: Send, status: int, message: str) -> None:
    headers = [(b"content-type", b"application/json")]
    body = json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode()
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
