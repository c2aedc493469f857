"""One model request: Chat Completions, streamed, from any compatible server, with the `openai` client."""

import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import openai
from openai import AsyncOpenAI, AsyncStream

from hitlchat.agent.endpoint import Endpoint, client
from hitlchat.agent.trouble import ModelTrouble, explain
from hitlchat.gate import canonical
from hitlchat.gate.storable import storable

LONGEST_ID = 200
# Why an answer ended, as Chat Completions have it.
REASONS = frozenset({"content_filter", "function_call", "length", "stop", "tool_calls"})
# What one answer may hold; beyond it, it is cut off: a model server must not be able to fill this one.
MOST_CALLS = 32
LONGEST_ANSWER = 1_000_000
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


@dataclass
class ModelCall:
    """A call as the model wrote it; `arguments` is text that may or may not be JSON."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def wire(self) -> dict[str, Any]:
        # Servers refuse a history with names or arguments that can't be; the tool message says what was wrong.
        name = _NOT_IN_NAMES.sub("_", self.name)[:64] or "unknown"
        return {"id": self.id, "type": "function", "function": {"name": name, "arguments": self._parsable()}}

    def _parsable(self) -> str:
        try:
            parsed = canonical.loads(self.arguments or "{}")
        except canonical.NotJson:
            return "{}"
        return storable(self.arguments) if self.arguments and isinstance(parsed, dict) else "{}"


@dataclass
class Answer:
    text: str = ""
    calls: list[ModelCall] = field(default_factory=list)
    finish_reason: str = ""


class Calls:
    """Puts streamed tool calls together, whatever the server's dialect: repeated ids and names, missing or equal
    indexes, interleaved deltas."""

    def __init__(self) -> None:
        self.found: list[ModelCall] = []
        self._by_index: dict[int, ModelCall] = {}

    def feed(self, index: int | None, id: str | None, name: str | None, arguments: str | None) -> None:
        call = self._current(index, id)
        if call is None or (id and call.id and id != call.id):
            call = ModelCall()
            self.found.append(call)
            if index is not None:
                self._by_index[index] = call
        call.id = id or call.id
        call.name = name or call.name
        call.arguments += arguments or ""

    def _current(self, index: int | None, id: str | None) -> ModelCall | None:
        if index is not None:
            return self._by_index.get(index)
        return self.found[-1] if self.found and not id else None


def request_body(endpoint: Endpoint, messages: list[str], tools: list[str]) -> bytes:
    """The request, put together from parts that are serialised already: encoding a long history again for every turn
    is what makes agent loops slow."""
    body = f'{{"model":{json.dumps(endpoint.model)},"stream":true,"messages":[{",".join(messages)}]'
    if tools:
        body += f',"tools":[{",".join(tools)}]'
    return (body + "}").encode()


async def ask(endpoint: Endpoint, body: bytes) -> AsyncGenerator[str | Answer, None]:
    """Yield pieces of text as they come, then one `Answer` with everything. ModelTrouble on any failure."""
    text: list[str] = []
    calls, reason, size = Calls(), "", 0
    try:
        async with await _open(client(endpoint), body) as stream:
            async for chunk in stream:
                for choice in chunk.get("choices")[:1]:
                    reason = choice.get("finish_reason") or reason
                    delta = choice.get("delta")
                    _feed(calls, delta)
                    size += len(delta.get("content") or "") + _written(delta)
                    _check_size(size, len(calls.found))
                    if content := delta.get("content"):
                        text.append(storable(content))
                        yield text[-1]
    # Nothing checks the types: JSON of another shape shows when it is read.
    except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
        raise explain(error, endpoint) from error
    if not reason:
        raise ModelTrouble("The model server ended its answer before it was complete. Send the message again.")
    yield Answer("".join(text), _named(calls.found), reason)


def ends(answer: Answer) -> dict[str, Any]:
    """What a trace tells of it."""
    reason = answer.finish_reason if answer.finish_reason in REASONS else "other"
    return {"gen_ai.response.finish_reasons": [reason], "hitlchat.calls": len(answer.calls)}


def _written(delta: dict[str, Any]) -> int:
    parts = delta.get("tool_calls") or ()
    return sum(len((part.get("function") or {}).get("arguments") or "") for part in parts)


def _check_size(characters: int, calls: int) -> None:
    if calls > MOST_CALLS:
        raise ModelTrouble(f"The model asked for more than {MOST_CALLS} calls at once; none of them was made.")
    if characters > LONGEST_ANSWER:
        raise ModelTrouble(f"The model's answer grew beyond {LONGEST_ANSWER:,} characters and was cut off.")


def _feed(calls: Calls, delta: dict[str, Any]) -> None:
    for part in delta.get("tool_calls") or ():
        function = part.get("function") or {}
        calls.feed(part.get("index"), part.get("id"), function.get("name"), function.get("arguments"))


def _named(calls: list[ModelCall]) -> list[ModelCall]:
    """Every call needs an id of its own, since its result is matched by it."""
    seen: set[str] = set()
    for number, call in enumerate(calls):
        if not 0 < len(call.id) <= LONGEST_ID or call.id in seen:
            call.id = f"call_{number}_{len(seen)}"
        seen.add(call.id)
        call.id, call.name = storable(call.id), storable(call.name)
    return calls


async def _open(server: AsyncOpenAI, body: bytes) -> AsyncStream[Any]:
    return await server.post(
        "/chat/completions",
        content=body,
        options={"headers": {"Content-Type": "application/json"}},
        # The chunks as they were sent: making a model of each takes longer than everything else done with it.
        cast_to=object,
        stream=True,
        stream_cls=AsyncStream[Any],
    )
