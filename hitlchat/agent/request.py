"""One model request: its body, made once more where it got no answer, and its answer as it streams in."""

import asyncio
import json
import logging
import math
import random
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import httpx2
from django.conf import settings

from hitlchat.agent import responses, stream
from hitlchat.agent.answer import OF_A_CALL, OF_A_MESSAGE, Answer, Reading
from hitlchat.agent.model_client import CHAT, RESPONSES, Endpoint, OutOfBounds, client, explain, refused_address

if TYPE_CHECKING:
    from openai import APIError, APIStatusError, AsyncOpenAI, AsyncStream

logger = logging.getLogger(__name__)

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
# Parts that a model at a server refused, by their names: it is not sent them again by this process.
_refused: set[tuple[str, str]] = set()
# By this name, what it added to its own answers.
ADDED: Final = "added"


def request_body(endpoint: Endpoint, messages: list[str], tools: list[str], **more: float | None) -> bytes:
    """The request, put together from parts that are serialised already: encoding a long history again for every turn
    is what makes agent loops slow.
    """
    # The temperature comes last, so that it can be left out again.
    last = dict(sorted(more.items(), key=lambda item: item[0] == TEMPERATURE))
    if endpoint.api == RESPONSES:
        return responses.body(endpoint, messages, tools, **last)
    body = f'{{"model":{json.dumps(endpoint.model)},"stream":true{USAGE},"messages":[{",".join(messages)}]'
    if tools:
        body += f',"tools":[{",".join(tools)}]'
        body += "" if endpoint.parallel_calls else ',"parallel_tool_calls":false'
    body += "".join(f",{json.dumps(name)}:{json.dumps(value)}" for name, value in last.items())
    return (body + "}").encode()


@dataclass(frozen=True)
class Retry:
    """The request got no answer, and is made once more after so many seconds; `why` in words."""

    why: str
    seconds: float


@dataclass(frozen=True)
class Unreadable:
    """The server could not read the reasoning of earlier turns, and has answered without it."""


@dataclass(frozen=True)
class LeftOut:
    """The server refused the temperature, and answers without."""


async def ask(
    endpoint: Endpoint,
    body: bytes,
    reading: Reading | None = None,
    *,
    has_images: bool = False,
    retries: int = 0,
    server: "AsyncOpenAI | None" = None,
) -> AsyncGenerator[str | Retry | Unreadable | LeftOut | Answer, None]:
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
            yield Unreadable()
        async with opening.opened as opened:
            if opening.without_temperature:
                yield LeftOut()
            async with aclosing(_texts(endpoint, opened, until, reading)) as texts:
                async for text in texts:
                    yield text
        answer = reading.answer()
    except (openai.OpenAIError, OutOfBounds, TimeoutError, *OF_ANOTHER_SHAPE) as error:
        tools = await asyncio.to_thread(_tools_in, body) if isinstance(error, openai.APIError) else []
        raise explain(error, endpoint, has_images=has_images, tools=tools) from error
    yield answer


def _tools_in(body: bytes) -> list[str]:
    """Return the names of the tools in a request of either API."""
    tools = json.loads(body).get("tools", [])
    return [(each.get("function") or each)["name"] for each in tools]


def without_added(body: bytes) -> bytes | None:
    """Return the same request without what servers added to their answers; None: it holds nothing of that."""
    asked, found = json.loads(body), False
    for message in asked["messages"]:
        if message["role"] == "assistant":
            calls = [(call, OF_A_CALL) for call in message.get("tool_calls", [])]
            for part, known in [(message, OF_A_MESSAGE), *calls]:
                for name in part.keys() - known:
                    del part[name]
                    found = True
    return json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode() if found else None


async def _texts(
    endpoint: Endpoint, opened: "AsyncStream[Any]", until: float, reading: Reading
) -> AsyncGenerator[str, None]:
    """Feed `reading` with all that comes, and yield the texts in it."""
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    chunks = _chunks(endpoint, opened)
    async with aclosing(_in_time(_events(opened), until)) as events:
        async for event in events:
            if event is not stream.DONE:
                for text in filter(None, map(reading.feed, chunks(event))):
                    yield text
            elif endpoint.api == CHAT:
                # Of the other API the last event says how the answer ended.
                reading.end()
    if reading.said and not reading.has_ended:
        raise openai.APIError("The answer is not complete.", opened.response.request, body=reading.said)


async def _events(opened: "AsyncStream[Any]") -> AsyncGenerator[Any, None]:
    """Yield what the events of the stream hold, with the errors that the library has."""
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    asked = opened.response.request
    try:
        async with aclosing(stream.events(opened.response)) as events:
            async for event in events:
                yield event
    except stream.Failure as failure:
        raise openai.APIError(str(failure), asked, body=failure.body) from failure
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=asked) from error
    except httpx2.RequestError as error:
        raise openai.APIConnectionError(request=asked) from error


def _chunks(endpoint: Endpoint, opened: "AsyncStream[Any]") -> Callable[[Any], Iterable[Any]]:
    """Return what reads an event of the stream as chunks of Chat Completions."""
    if endpoint.api == CHAT:
        return lambda event: (event,)
    return partial(_of_response, responses.Events(), opened.response.request)


def _of_response(events: responses.Events, asked: "httpx2.Request", event: Any) -> Iterator[Any]:
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    try:
        yield from events.chunks(event)
    except responses.Failed as failed:
        # As the library tells of the failures that Chat Completions have in a stream.
        raise openai.APIError(str(failed), asked, body=failed.body) from failed


async def _in_time(events: AsyncGenerator[Any, None], until: float) -> AsyncGenerator[Any, None]:
    """The same `events`. TimeoutError: they have not ended by `until`, however often something comes."""
    end = object()
    async with aclosing(events):
        while True:
            # Not around what is done with an event, which takes its own time.
            async with asyncio.timeout_at(until):
                event = await anext(events, end)
            if event is end:
                return
            yield event


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


@dataclass(frozen=True)
class Refusable:
    """A part of requests without which a server is asked that refuses it, in any of these words."""

    part: str
    words: tuple[str, ...]


REFUSABLE: Final = {
    CHAT: (Refusable(USAGE, ("stream_options",)),),
    RESPONSES: (
        Refusable(responses.INCLUDE, ("'include", "encrypted")),
        Refusable(responses.SUMMARY, ("reasoning",)),
    ),
}


def takes_added(endpoint: Endpoint) -> bool:
    """Return whether an endpoint may be sent what it added to its answers, such as reasoning: some refuse their own."""
    return (endpoint.name, ADDED) not in _refused


class _Opening:
    """A request until its answer begins; `opened` is that answer, once `tries` has come to its end."""

    def __init__(self, server: "AsyncOpenAI", endpoint: Endpoint, body: bytes, until: float, retries: int) -> None:
        self._server, self._endpoint, self._until, self._retries = server, endpoint, until, retries
        self._parts = [each for each in REFUSABLE[endpoint.api] if each.part.encode() in body]
        self._body = body
        for each in [each for each in self._parts if (endpoint.name, each.part) in _refused]:
            self._leave_out(each)
        self.without_reasoning = False
        # Why it was asked once more without what it had added to its answers.
        self._refused_added: APIStatusError | None = None
        self.opened: AsyncStream[Any]
        self.without_temperature = False

    async def tries(self) -> AsyncGenerator[Retry, None]:
        import openai  # noqa: PLC0415 - loading it takes a third of a second

        for made in range(self._retries + 1):
            try:
                self.opened = await self._asked()
            except openai.APIError as error:
                seconds = _wait(error, made) if made < self._retries else None
                if seconds is None:
                    raise
                yield Retry(str(explain(error, self._endpoint)), seconds)
                async with asyncio.timeout_at(self._until):
                    await asyncio.sleep(seconds)
            else:
                return

    async def _asked(self) -> "AsyncStream[Any]":
        import openai  # noqa: PLC0415 - loading it takes a third of a second

        refused: list[Refusable] = []
        while True:
            try:
                opened = await self._post()
            except openai.APIStatusError as error:
                if await self._without_reasoning(error) or self._without_temperature(error):
                    continue
                if (part := self._refused_part(error)) is not None:
                    self._leave_out(part)
                    refused.append(part)
                elif not await self._without_added(error):
                    # What was left out before is not the reason, and may even be what is missing.
                    _refused.discard((self._endpoint.name, ADDED))
                    raise self._refused_added or error from None
            else:
                # That was the reason, since now there is an answer.
                _refused.update((self._endpoint.name, each.part) for each in refused)
                if self._refused_added is not None:
                    _refused.add((self._endpoint.name, ADDED))
                return opened

    async def _without_added(self, error: "APIStatusError") -> bool:
        """Leave out what the server added to its earlier answers, once: that may be what it refuses."""
        may_be = self._endpoint.api == CHAT and self._refused_added is None and error.status_code in (400, 422)
        plain = await asyncio.to_thread(without_added, self._body) if may_be else None
        if plain is None:
            return False
        self._body, self._refused_added = plain, error
        return True

    def _refused_part(self, error: "APIStatusError") -> Refusable | None:
        said = f"{error.message} {error.body}"
        found = (each for each in self._parts if any(word in said.lower() for word in each.words))
        return next(found, None) if error.status_code in (400, 422) else None

    def _leave_out(self, part: Refusable) -> None:
        self._parts.remove(part)
        self._body = self._body.replace(part.part.encode(), b"", 1)

    async def _without_reasoning(self, error: "APIStatusError") -> bool:
        """Leave out what was thought in earlier turns, once, if that is what the server refuses."""
        said = f"{error.message} {error.body}".lower()
        may_be = self._endpoint.api == RESPONSES and not self.without_reasoning and error.status_code in (400, 404, 422)
        if not may_be or responses.REASONING not in self._body or not OF_REASONING.search(said):
            return False
        logger.info("The model server %s cannot read reasoning of earlier turns", self._endpoint.shown_url)
        self._body = await asyncio.to_thread(responses.without_reasoning, self._body)
        self.without_reasoning = True
        return True

    def _without_temperature(self, error: "APIStatusError") -> bool:
        """Leave out the temperature, if that is what the server refuses."""
        refused = error.status_code in (400, 422) and TEMPERATURE in f"{error.message} {error.body}".lower()
        if not refused or not has_temperature(self._body):
            return False
        self._body = _TEMPERATURE_AT_END.sub(b"}", self._body)
        self.without_temperature = True
        return True

    async def _post(self) -> "AsyncStream[Any]":
        from openai import AsyncStream  # noqa: PLC0415 - loading it takes a third of a second

        async with asyncio.timeout_at(self._until):
            return await self._server.post(
                PLACES[self._endpoint.api],
                content=self._body,
                options={"headers": {"Content-Type": "application/json"}},
                # The chunks as they were sent: making a model of each takes longer than everything else done with it.
                cast_to=object,
                stream=True,
                stream_cls=AsyncStream[Any],
            )


def has_temperature(body: bytes) -> bool:
    return _TEMPERATURE_AT_END.search(body) is not None


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
