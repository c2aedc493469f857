"""The wire format: Chat Completions chunks, and those as server-sent events."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

MODEL = "demo"
PIECE = 16  # characters of arguments in one delta

Chunk = dict[str, Any]
_WORD = re.compile(r"\s*\S+|\s+$")


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
