"""One model request: Chat Completions, streamed, from any compatible server, with the `openai` client."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from django.conf import settings

from hitlchat.agent.answer import Answer, Reading
from hitlchat.agent.answer_bytes import OutOfBounds
from hitlchat.agent.endpoint import Endpoint, client
from hitlchat.agent.trouble import explain

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

# Why an answer ended, as Chat Completions have it.
REASONS = frozenset({"content_filter", "function_call", "length", "stop", "tool_calls"})


def request_body(endpoint: Endpoint, messages: list[str], tools: list[str]) -> bytes:
    """The request, put together from parts that are serialised already: encoding a long history again for every turn
    is what makes agent loops slow."""
    body = f'{{"model":{json.dumps(endpoint.model)},"stream":true,"messages":[{",".join(messages)}]'
    if tools:
        body += f',"tools":[{",".join(tools)}]'
    return (body + "}").encode()


async def ask(endpoint: Endpoint, body: bytes) -> AsyncGenerator[str | Answer, None]:
    """Yield pieces of text as they come, then one `Answer` with everything. ModelTrouble on any failure."""
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    reading = Reading()
    until = asyncio.get_running_loop().time() + settings.MODEL_ANSWER_SECONDS
    try:
        async with asyncio.timeout_at(until):
            opened = await _open(client(endpoint), body)
        async with opened:
            async for chunk in _in_time(opened, until):
                if text := reading.feed(chunk):
                    yield text
    # Nothing checks the types: JSON of another shape shows when it is read; so does how deep it is.
    except (
        openai.OpenAIError,
        OutOfBounds,
        TimeoutError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise explain(error, endpoint) from error
    yield reading.answer()


async def _in_time(stream: "AsyncStream[Any]", until: float) -> AsyncGenerator[Any, None]:
    """The chunks of `stream`. TimeoutError: it has not ended by `until`, however often it says something."""
    chunks, end = aiter(stream), object()
    while True:
        # Not around what is done with a chunk, which takes its own time.
        async with asyncio.timeout_at(until):
            chunk = await anext(chunks, end)
        if chunk is end:
            return
        yield chunk


def ends(answer: Answer) -> dict[str, Any]:
    """What a trace tells of it."""
    reason = answer.finish_reason if answer.finish_reason in REASONS else "other"
    return {"gen_ai.response.finish_reasons": [reason], "hitlchat.calls": len(answer.calls)}


async def _open(server: "AsyncOpenAI", body: bytes) -> "AsyncStream[Any]":
    from openai import AsyncStream  # noqa: PLC0415 - loading it takes a third of a second

    return await server.post(
        "/chat/completions",
        content=body,
        options={"headers": {"Content-Type": "application/json"}},
        # The chunks as they were sent: making a model of each takes longer than everything else done with it.
        cast_to=object,
        stream=True,
        stream_cls=AsyncStream[Any],
    )
