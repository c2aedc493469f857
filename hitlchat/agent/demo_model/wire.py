"""The wire format of Chat Completions: what the messages of a request say, and the chunks of an answer."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hitlchat.agent import titles

MODEL = "demo"
PIECE = 16  # characters of arguments in one delta

Chunk = dict[str, Any]
_WORD = re.compile(r"\s*\S+|\s+$")
NOTE = "[Note from hitlchat]"
ATTACHMENT = re.compile(r"^\[Attachment [0-9a-f]{8}: ", re.MULTILINE)
LONGEST_RESULT = 200_000
Message = dict[str, Any]


class Writer:
    """Makes the chunks of one answer; ids come from the request alone, so that the same request has the same answer."""

    def __init__(self, request: dict[str, Any]) -> None:
        seen = json.dumps([request.get("messages"), request.get("tools")], sort_keys=True, default=str)
        self._digest = hashlib.sha256(seen.encode("utf-8", "replace")).hexdigest()
        options = request.get("stream_options")
        self._wants_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        self._read, self._written = len(seen.split()), 0

    def text(self, content: str) -> Iterator[Chunk]:
        """An answer in words."""
        yield self._delta({"role": "assistant", "content": ""})
        for match in _WORD.finditer(content):
            yield self._delta({"content": match[0]})
        yield from self._end("stop")

    def calls(self, calls: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[Chunk]:
        """An answer that is nothing but tool calls."""
        yield self._delta({"role": "assistant", "content": None})
        for index, (name, arguments) in enumerate(calls):
            function = {"name": name, "arguments": ""}
            call_id = f"call_{self._digest[:16]}_{index}"
            yield self._call({"index": index, "id": call_id, "type": "function", "function": function})
            written = json.dumps(arguments, ensure_ascii=False)
            for start in range(0, len(written), PIECE):
                yield self._call({"index": index, "function": {"arguments": written[start : start + PIECE]}})
        yield from self._end("tool_calls")

    def _call(self, call: dict[str, Any]) -> Chunk:
        return self._delta({"tool_calls": [call]})

    def _delta(self, delta: dict[str, Any], finish_reason: str | None = None) -> Chunk:
        self._written += 1
        return self._chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}])

    def _end(self, reason: str) -> Iterator[Chunk]:
        yield self._delta({}, reason)
        if self._wants_usage:
            usage = {"prompt_tokens": self._read, "completion_tokens": self._written}
            yield {**self._chunk([]), "usage": {**usage, "total_tokens": sum(usage.values())}}

    def _chunk(self, choices: list[dict[str, Any]]) -> Chunk:
        identity = {"id": f"chatcmpl-{self._digest[:24]}", "object": "chat.completion.chunk", "created": 0}
        return {**identity, "model": MODEL, "choices": choices}


def as_sse(chunks: Iterable[Chunk]) -> Iterator[bytes]:
    """`chunks` as server-sent events, with the mark that ends the stream."""
    for chunk in chunks:
        yield f"data: {json.dumps(chunk, ensure_ascii=True)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def to_be_titled(history: list["Message"]) -> str | None:
    """Return what the person said, if the request is for the title of a conversation."""
    if len(history) != 2:
        return None
    return titles.asked_about(text_of(history[0]), text_of(history[1]))


@dataclass(frozen=True)
class Came:
    """A call of the last turn and the text of its tool message, None if there is none."""

    name: str
    content: str | None


def messages(request: dict[str, Any]) -> list[Message]:
    return _dicts(request.get("messages"))


def _dicts(raw: Any) -> list[dict[str, Any]]:
    return [each for each in raw if isinstance(each, dict)] if isinstance(raw, list) else []


def text_of(message: Message) -> str:
    """The text of a message, whether it is one string or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text") or "") for part in content[:100] if isinstance(part, dict))
    return str(content or "")[:LONGEST_RESULT]


def _name(call: dict[str, Any]) -> str:
    function = call.get("function")
    return str(function.get("name") or "the tool") if isinstance(function, dict) else "the tool"


def is_from_user(message: Message) -> bool:
    return message.get("role") == "user" and not text_of(message).startswith(NOTE)


def since_user(history: list[Message]) -> list[Message]:
    """Return what came after the user's last message."""
    last = max((number for number, message in enumerate(history) if is_from_user(message)), default=-1)
    return history[last + 1 :]


def came_back(history: list[Message]) -> list[Came]:
    """The calls made since the user's last message, each with its result, in the order of the calls."""
    recent = since_user(history)
    results = {
        str(message.get("tool_call_id")): text_of(message) for message in recent if message.get("role") == "tool"
    }
    return [
        Came(_name(call), results.get(str(call.get("id"))))
        for message in recent
        if message.get("role") == "assistant"
        for call in _dicts(message.get("tool_calls"))
    ]


def last_said(history: list[Message]) -> str:
    """Return the user's last message, without the files that came with it."""
    said = next((text_of(message) for message in reversed(history) if is_from_user(message)), "")
    return ATTACHMENT.split(said, maxsplit=1)[0].strip()


def attached(history: list[Message]) -> int:
    """Return how many files came with the user's last message."""
    said = next((text_of(message) for message in reversed(history) if is_from_user(message)), "")
    return len(ATTACHMENT.findall(said))


def told_before(history: list[Message], beginning: str) -> bool:
    """Return whether an earlier answer began like this."""
    return any(message.get("role") == "assistant" and text_of(message).startswith(beginning) for message in history)
