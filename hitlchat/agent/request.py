"""One model request: its body, made once more where it got no answer, and its answer as it streams in."""

import asyncio
import json
import logging
import math
import random
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import httpx2
from django.conf import settings

from hitlchat.agent import responses, stream
from hitlchat.agent.answer import OF_A_CALL, OF_A_MESSAGE, Answer, Reading
from hitlchat.agent.model_client import (
    CHAT,
    RESPONSES,
    Endpoint,
    ModelTrouble,
    OutOfBounds,
    client,
    explain,
    refused_address,
)
from hitlchat.base import canonical

if TYPE_CHECKING:
    from openai import APIError, APIStatusError, AsyncOpenAI, AsyncStream

# Why an answer ended, as Chat Completions have it.
REASONS = frozenset({"content_filter", "function_call", "length", "stop", "tool_calls"})
# Nothing checks the types: JSON of another shape shows when it is read; so does how deep it is.
OF_ANOTHER_SHAPE: Final = (ValueError, TypeError, AttributeError, RecursionError)
USAGE: Final = ',"stream_options":{"include_usage":true}'
TEMPERATURE: Final = "temperature"
# Where `request_body` puts it.
_TEMPERATURE_AT_END: Final = re.compile(rb',"temperature":[-+.0-9e]+}\Z')
RETRIES: Final = 2
# A server that wants more time than this is not waited for.
LONGEST_WAIT: Final = 60.0
FIRST_WAIT: Final = 0.5
# 409: some gateways answer it while a model is being loaded.
PASSING: Final = frozenset({408, 409, 429})
PLACES: Final = {CHAT: "/chat/completions", RESPONSES: responses.PLACE}
# How servers name reasoning that they cannot read: it was sealed with another key, or they did not keep it.
OF_REASONING: Final = re.compile(r"encrypted|'reasoning'|\brs_")
# Parts of requests without which a server is asked that refuses them, in any of these words.
REFUSABLE: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    CHAT: {USAGE: ("stream_options",)},
    RESPONSES: {responses.INCLUDE: ("'include", "encrypted"), responses.SUMMARY: ("reasoning",)},
}
# By this name, what a server added to its own answers.
ADDED: Final = "added"

logger = logging.getLogger(__name__)

# Parts that a model at a server refused, by their names: it is not sent them again by this process.
_refused: set[tuple[str, str]] = set()


@dataclass(frozen=True)
class Retry:
    """The request got no answer, and is made once more after so many seconds; `why` in words."""

    why: str
    seconds: float


class LeftOut(Enum):
    """What the server refused, and answers without: the reasoning of earlier turns, or the temperature."""

    REASONING = "reasoning"
    TEMPERATURE = "temperature"


def request_body(endpoint: Endpoint, messages: list[str], tools: list[str], **more: float | None) -> bytes:
    """Return the request, put together from parts that are serialised already.

    Encoding a long history again for every turn is what makes agent loops slow.
    """
    body = f'{{"model":{json.dumps(endpoint.model)},"stream":true'
    if endpoint.api == RESPONSES:
        body, tools = body + responses.body(endpoint, messages), [*map(responses.tool, tools)]
    else:
        body += f'{USAGE},"messages":[{",".join(messages)}]'
    if tools:
        body += f',"tools":[{",".join(tools)}]'
        body += "" if endpoint.parallel_calls else ',"parallel_tool_calls":false'
    # The temperature comes last, so that it can be left out again.
    last = sorted(more.items(), key=lambda item: item[0] == TEMPERATURE)
    body += "".join(f",{json.dumps(name)}:{json.dumps(value)}" for name, value in last)
    return (body + "}").encode()


def own_body(endpoint: Endpoint, instructions: str, content: str, tokens: int) -> bytes:
    """Return a request of hitlchat itself, such as for a title: its instructions, and what they are about."""
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": content}]
    return request_body(endpoint, list(map(canonical.pretty, messages)), [], **{endpoint.limit_name: tokens})


async def ask(
    endpoint: Endpoint,
    body: bytes,
    reading: Reading | None = None,
    *,
    has_images: bool = False,
    retries: int = 0,
    server: "AsyncOpenAI | None" = None,
) -> AsyncGenerator[str | Retry | LeftOut | Answer, None]:
    """Yield pieces of text as they come, then one `Answer` with everything. ModelTrouble on any failure.

    `reading` knows at any time what has come. `retries`: of a request that got no answer, each told before it is made.
    `server`: a client other than the one that is kept for the endpoint.
    """
    # Not in the loop, in which others wait meanwhile and leases are renewed.
    openai = await asyncio.to_thread(import_module, "openai")
    reading = reading or Reading()
    until = asyncio.get_running_loop().time() + settings.MODEL_ANSWER_SECONDS
    opening = _Opening(server or client(endpoint), endpoint, body, until, retries)
    try:
        async with aclosing(opening.tries()) as tries:
            async for retry in tries:
                yield retry
        if opening.without_reasoning:
            yield LeftOut.REASONING
        async with opening.opened as opened:
            if opening.without_temperature:
                yield LeftOut.TEMPERATURE
            async with aclosing(_texts(endpoint, opened, until, reading)) as texts:
                async for text in texts:
                    yield text
        answer = reading.answer()
    except (openai.OpenAIError, OutOfBounds, TimeoutError, *OF_ANOTHER_SHAPE) as error:
        tools = await asyncio.to_thread(_tools_in, body) if isinstance(error, openai.APIError) else []
        raise explain(error, endpoint, has_images=has_images, tools=tools) from error
    yield answer


async def whole(endpoint: Endpoint, body: bytes, *, retries: int = 0, server: "AsyncOpenAI | None" = None) -> Answer:
    """Return the answer once it has ended. ModelTrouble on any failure."""
    async with aclosing(ask(endpoint, body, retries=retries, server=server)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Answer):
                return piece
    raise ModelTrouble("The model server sent no answer.")


def without_added(body: bytes) -> bytes | None:
    """Return the same request without what servers added to their answers; None: it holds nothing of that."""
    sent = json.loads(body)
    answers = [each for each in sent["messages"] if each["role"] == "assistant"]
    parts = [(each, OF_A_MESSAGE) for each in answers]
    parts += [(call, OF_A_CALL) for each in answers for call in each.get("tool_calls", [])]
    added = [(part, name) for part, usual in parts for name in part.keys() - usual]
    for part, name in added:
        del part[name]
    return json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode() if added else None


async def models(endpoint: Endpoint, server: "AsyncOpenAI") -> Any:
    """Return what the server says of the models that it has, of any shape. ModelTrouble."""
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    try:
        return await server.get("/models", cast_to=object)
    except (openai.OpenAIError, OutOfBounds, ValueError) as error:
        raise explain(error, endpoint) from error


def ends(answer: Answer) -> dict[str, Any]:
    """Return what a trace tells of it."""
    reason = answer.finish_reason if answer.finish_reason in REASONS else "other"
    return {"gen_ai.response.finish_reasons": [reason], "hitlchat.calls": len(answer.calls)}


def takes_added(endpoint: Endpoint) -> bool:
    """Return whether an endpoint may be sent what it added to its answers, such as reasoning: some refuse their own."""
    return (endpoint.name, ADDED) not in _refused


def has_temperature(body: bytes) -> bool:
    return _TEMPERATURE_AT_END.search(body) is not None


def _tools_in(body: bytes) -> list[str]:
    tools = json.loads(body).get("tools", [])
    return [(each.get("function") or each)["name"] for each in tools]


async def _texts(
    endpoint: Endpoint, opened: "AsyncStream[Any]", until: float, reading: Reading
) -> AsyncGenerator[str, None]:
    """Feed `reading` with all that comes, and yield the texts in it. Failures are raised as the library's errors."""
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    sent, translator = opened.response.request, responses.Events()
    try:
        async with aclosing(stream.events(opened.response, until)) as events:
            async for event in events:
                if event is not stream.DONE:
                    chunks = (event,) if endpoint.api == CHAT else translator.chunks(event)
                    for text in filter(None, map(reading.feed, chunks)):
                        yield text
                elif endpoint.api == CHAT:
                    # Of the other API the last event says how the answer ended.
                    reading.end()
    except stream.Failure as failure:
        raise openai.APIError(str(failure), sent, body=failure.body) from failure
    except httpx2.RequestError as error:
        is_timeout = isinstance(error, httpx2.TimeoutException)
        raise (openai.APITimeoutError if is_timeout else openai.APIConnectionError)(request=sent) from error
    if reading.aside and not reading.has_ended:
        raise openai.APIError("The answer is not complete.", sent, body=reading.aside)


class _Opening:
    """A request until its answer begins; `opened` is that answer, once `tries` has come to its end."""

    def __init__(self, server: "AsyncOpenAI", endpoint: Endpoint, body: bytes, until: float, retries: int) -> None:
        self._server, self._endpoint, self._until, self._retries = server, endpoint, until, retries
        self._body = body
        self._parts = {part: words for part, words in REFUSABLE[endpoint.api].items() if part.encode() in body}
        for part in [part for part in self._parts if (endpoint.name, part) in _refused]:
            self._leave_out(part)
        self.without_reasoning = self.without_temperature = False
        # Why it was asked once more without what it had added to its answers.
        self._refused_added: APIStatusError | None = None
        self.opened: AsyncStream[Any]

    async def tries(self) -> AsyncGenerator[Retry, None]:
        import openai  # noqa: PLC0415 - loading it takes a third of a second

        for made in range(self._retries + 1):
            try:
                self.opened = await self._ask()
            except openai.APIError as error:
                seconds = _wait(error, made) if made < self._retries else None
                if seconds is None:
                    raise
                yield Retry(str(explain(error, self._endpoint)), seconds)
                async with asyncio.timeout_at(self._until):
                    await asyncio.sleep(seconds)
            else:
                return

    async def _ask(self) -> "AsyncStream[Any]":
        import openai  # noqa: PLC0415 - loading it takes a third of a second

        refused: list[str] = []
        while True:
            try:
                async with asyncio.timeout_at(self._until):
                    opened = await self._post()
            except openai.APIStatusError as error:
                words = f"{error.message} {error.body}".lower()
                if await self._without_reasoning(error, words) or self._without_temperature(error, words):
                    continue
                if (part := self._refused_part(error, words)) is not None:
                    self._leave_out(part)
                    refused.append(part)
                elif not await self._without_added(error):
                    # What was left out before is not the reason, and may even be what is missing.
                    _refused.discard((self._endpoint.name, ADDED))
                    raise self._refused_added or error from None
            else:
                # That was the reason, since now there is an answer.
                refused += [ADDED] if self._refused_added is not None else []
                _refused.update((self._endpoint.name, part) for part in refused)
                return opened

    async def _without_added(self, error: "APIStatusError") -> bool:
        """Leave out what the server added to its earlier answers, once: that may be what it refuses."""
        may_be = self._endpoint.api == CHAT and self._refused_added is None and error.status_code in (400, 422)
        plain = await asyncio.to_thread(without_added, self._body) if may_be else None
        if plain is None:
            return False
        self._body, self._refused_added = plain, error
        return True

    def _refused_part(self, error: "APIStatusError", words: str) -> str | None:
        found = (part for part, names in self._parts.items() if any(name in words for name in names))
        return next(found, None) if error.status_code in (400, 422) else None

    def _leave_out(self, part: str) -> None:
        del self._parts[part]
        self._body = self._body.replace(part.encode(), b"", 1)

    async def _without_reasoning(self, error: "APIStatusError", words: str) -> bool:
        """Leave out the reasoning of earlier turns, once, if that is what the server refuses."""
        may_be = self._endpoint.api == RESPONSES and not self.without_reasoning and error.status_code in (400, 404, 422)
        if not may_be or responses.REASONING not in self._body or not OF_REASONING.search(words):
            return False
        logger.info("The model server %s cannot read reasoning of earlier turns", self._endpoint.shown_url)
        self._body = await asyncio.to_thread(responses.without_reasoning, self._body)
        self.without_reasoning = True
        return True

    def _without_temperature(self, error: "APIStatusError", words: str) -> bool:
        refused = error.status_code in (400, 422) and TEMPERATURE in words
        if not refused or not has_temperature(self._body):
            return False
        self._body, self.without_temperature = _TEMPERATURE_AT_END.sub(b"}", self._body), True
        return True

    async def _post(self) -> "AsyncStream[Any]":
        from openai import AsyncStream  # noqa: PLC0415 - loading it takes a third of a second

        return await self._server.post(
            PLACES[self._endpoint.api],
            content=self._body,
            options={"headers": {"Content-Type": "application/json"}},
            # The chunks as they were sent: making a model of each takes longer than everything else done with it.
            cast_to=object,
            stream=True,
            stream_cls=AsyncStream[Any],
        )


def _wait(error: "APIError", made: int) -> float | None:
    """Return after how many seconds the request may be made again; None: it would fail the same way."""
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    usual = FIRST_WAIT * 2**made * random.uniform(0.75, 1)  # noqa: S311 - so that many do not come at once
    if isinstance(error, openai.APIConnectionError):
        return None if refused_address(error) else usual
    if not isinstance(error, openai.APIStatusError):
        return None
    headers, status = error.response.headers, error.status_code
    wished = {"true": True, "false": False}.get(headers.get("x-should-retry", ""))
    if not (wished if wished is not None else status in PASSING or status >= 500):
        return None
    seconds = _seconds(headers.get("retry-after-ms"), 1000) or _seconds(headers.get("retry-after"), 1) or usual
    return seconds if seconds <= LONGEST_WAIT else None


def _seconds(given: str | None, of_a_second: int) -> float:
    try:
        found = float(given or "") / of_a_second
    except ValueError:
        return 0
    return found if math.isfinite(found) and found > 0 else 0
