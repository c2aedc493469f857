"""The Responses API: requests in its shape, and its events read as chunks of Chat Completions.

What is stored has the shape of Chat Completions, whichever API an endpoint speaks: a conversation may change between
them, and the bounds of an answer are the same.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from hitlchat.agent.answer import plain_text
from hitlchat.agent.model_client import Endpoint, ModelTrouble
from hitlchat.agent.stream import Failure
from hitlchat.base import canonical
from hitlchat.base.canonical import storable

Item = dict[str, Any]
Chunk = dict[str, Any]

PLACE: Final = "/responses"
# Some models and servers refuse these, and are then asked without.
INCLUDE: Final = ',"include":["reasoning.encrypted_content"]'
SUMMARY: Final = ',"reasoning":{"summary":"auto"}'
# Stands in a request that sends reasoning back. Within the texts of JSON no quotation mark stands by itself.
REASONING: Final = b'{"type": "reasoning"'
# Under this name an answer keeps what it was made of, for its own server: by place, reasoning whole, of the rest what
# the message does not say.
KEPT: Final = "response_output"
LONGEST_CALL_ID: Final = 64
LONGEST_PHASE: Final = 40
# Of one answer; calls have a bound of their own.
MOST_ITEMS: Final = 256
BETWEEN: Final = "\n\n"
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
# Which item goes on with each event.
_PIECES: Final = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
    "response.function_call_arguments.delta": "function_call",
    "response.function_call_arguments.done": "function_call",
}


# -- Requests ----------------------------------------------------------------------------------------------------------


def body(endpoint: Endpoint, messages: Iterable[str]) -> str:
    """Return what a request says of messages that are serialised as Chat Completions have them.

    The server is to keep nothing of it: each request carries all that was said.
    """
    read = [canonical.loads(each) for each in messages]
    instructions = BETWEEN.join(message["content"] for message in read if message["role"] == "system")
    items = [item for message in read if message["role"] != "system" for item in _items(message)]
    # Of a model that the environment names nobody has said whether it thinks.
    summary = SUMMARY if endpoint.thinks or not endpoint.stored else ""
    own = f',"instructions":{canonical.pretty(instructions)}' if instructions else ""
    return f',"store":false{INCLUDE}{summary}{own},"input":{canonical.pretty(items)}'


def tool(described: str) -> str:
    """Return a tool that is serialised as Chat Completions have it."""
    # Strict is the default of this API, and changes what a schema may say.
    return canonical.pretty({"type": "function", **canonical.loads(described)["function"], "strict": False})


def without_reasoning(sent: bytes) -> bytes:
    """Return the same request without what the model thought in earlier turns."""
    request = json.loads(sent)
    request["input"] = [item for item in request["input"] if item["type"] != "reasoning"]
    return json.dumps(request, separators=(",", ":")).encode()


def _items(message: dict[str, Any]) -> list[Item]:
    content = message["content"]
    match message["role"]:
        case "assistant":
            return _of_assistant(message)
        case "tool":
            call_id = _short(message["tool_call_id"])
            return [{"type": "function_call_output", "call_id": call_id, "output": content}]
        case role:
            parts = content if isinstance(content, str) else [_part(part) for part in content]
            return [{"type": "message", "role": role, "content": parts}]


def _part(part: dict[str, Any]) -> Item:
    if part["type"] == "image_url":
        return {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
    return {"type": "input_text", "text": part["text"]}


def _of_assistant(message: dict[str, Any]) -> list[Item]:
    text, parts = message["content"] or "", message.get(KEPT) or {}
    calls = [
        {"type": "function_call", "call_id": _short(each["id"]), **each["function"]}
        for each in message.get("tool_calls", [])
    ]
    order = [parts[place] for place in sorted(parts, key=int)]
    if not order or not _fits(order, text, calls):
        return [*([_spoken(text)] if text else []), *calls]
    items = list(_in_order(order, text, iter(calls)))
    # Reasoning that nothing follows is refused.
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items


def _fits(order: list[Item], text: str, calls: list[Item]) -> bool:
    """Return whether the parts of an answer are still those that it was kept with."""
    kinds = [entry["type"] for entry in order]
    lengths = [entry["length"] for entry in order if entry["type"] == "message"]
    whole = sum(lengths) + len(BETWEEN) * max(len(lengths) - 1, 0)
    return kinds.count("function_call") == len(calls) and (not text or len(text) == whole)


def _in_order(order: list[Item], text: str, calls: Iterator[Item]) -> Iterator[Item]:
    begins = 0
    for entry in order:
        if entry["type"] == "reasoning":
            yield entry
        elif entry["type"] == "function_call":
            yield next(calls)
        else:
            ends = begins + entry["length"]
            if spoken := text[begins:ends].strip():
                yield _spoken(spoken, entry["phase"])
            begins = ends + len(BETWEEN)


def _spoken(text: str, phase: str = "") -> Item:
    item = {"type": "message", "role": "assistant", "content": text}
    return item | {"phase": phase} if phase else item


def _short(call_id: str) -> str:
    """Return the id of a call as this API takes it; other servers give longer ones."""
    if len(call_id) <= LONGEST_CALL_ID:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:40]}"


# -- Answers -----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Item:
    """An item of the output while it is read. `length`: of its text, `has_thoughts`: whether any were shown."""

    kind: str
    place: int
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    length: int = 0
    has_thoughts: bool = False
    phase: str = ""
    half: str = ""
    is_done: bool = False
    is_whole: bool = False


class Events:
    """Reads the events of one response. Whatever has another shape than they have raises what Python raises."""

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._by_index: dict[int, _Item] = {}
        self._keeps = False
        # What was thought or said last, by item and part: others stand apart from it.
        self._thought: tuple[object, ...] = ()
        self._spoke: _Item | None = None

    def chunks(self, event: dict[str, Any]) -> Iterator[Chunk]:
        """Yield what the event tells, as chunks of Chat Completions.

        Raises: Failure, if it tells of a failure; ModelTrouble, if there is too much of it.
        """
        kind = event.get("type") or ""
        if kind == "error":
            raise _failure(event)
        if kind in _ENDS:
            yield from self._end(kind.removeprefix("response."), event.get("response") or {})
        elif not kind and event.get("object") == "response":
            # A server that does not stream.
            yield from self._end(str(event.get("status")), event)
        elif kind.startswith("response.output_item."):
            read = self._done if kind.endswith(".done") else self._begin
            yield from read(event.get("output_index"), event.get("item") or {})
        elif kind in _PIECES:
            yield from self._piece(kind, event)

    def _piece(self, kind: str, event: dict[str, Any]) -> Iterator[Chunk]:
        index, of, piece = event.get("output_index"), _PIECES[kind], event.get("delta")
        # Not every server told the beginning of the item that this goes on with.
        item = self._by_index.get(index) if index is not None else self._items[-1] if self._items else None
        if item is None or item.kind != of:
            item = self._new(index, of)
        if kind.endswith("arguments.done"):
            return self._argued(item, plain_text(event.get("arguments")))
        if of == "message":
            return self._text(item, piece)
        if of == "function_call":
            return self._argue(item, piece)
        return self._think(item, (kind, event.get("summary_index", event.get("content_index"))), piece)

    def _new(self, index: int | None, kind: str) -> _Item:
        if len(self._items) >= MOST_ITEMS:
            raise ModelTrouble(f"The model's answer had more than {MOST_ITEMS} parts and was cut off.")
        item = _Item(kind, len(self._items))
        self._items.append(item)
        if index is not None:
            self._by_index[index] = item
        return item

    def _begin(self, index: int | None, given: dict[str, Any]) -> Iterator[Chunk]:
        item = self._new(index, plain_text(given.get("type")))
        if item.kind == "function_call":
            yield from self._named(item, given)

    def _named(self, item: _Item, given: dict[str, Any]) -> Iterator[Chunk]:
        """Tell id and name of a call, once; two names of one call are none."""
        name = plain_text(given.get("name"))
        if item.name and name and name != item.name:
            raise ValueError("a call has two names")
        # Also without a name, since calls count in the order in which they begin.
        if not item.name:
            item.name = name
            yield _part_of_call(item, id=plain_text(given.get("call_id")), name=name)

    def _argue(self, item: _Item, piece: Any) -> Iterator[Chunk]:
        item.arguments.append(plain_text(piece))
        yield _part_of_call(item, arguments=item.arguments[-1])

    def _text(self, item: _Item, piece: Any) -> Iterator[Chunk]:
        given, item.half = canonical.without_half(item.half + plain_text(piece))
        if not (text := storable(given)):
            return
        apart = BETWEEN if self._spoke not in (None, item) else ""
        self._spoke = item
        item.length += len(text)
        yield _delta(content=apart + text)

    def _think(self, item: _Item, part: tuple[object, ...], piece: Any) -> Iterator[Chunk]:
        if not (text := plain_text(piece)):
            return
        now = (item.place, *part)
        apart = BETWEEN if self._thought not in ((), now) else ""
        self._thought, item.has_thoughts = now, True
        yield _delta(reasoning_content=apart + text)

    def _done(self, index: int | None, given: Any) -> Iterator[Chunk]:
        kind = plain_text(given.get("type"))
        open_ones = (each for each in self._items if each.kind == kind and not each.is_done)
        item = self._by_index.get(index) if index is not None else next(open_ones, None)
        if item is None or item.is_done or item.kind != kind:
            item = self._new(index, kind)
        item.is_done = True
        match kind:
            case "message":
                item.phase = plain_text(given.get("phase"))[:LONGEST_PHASE]
                self._keeps = self._keeps or bool(item.phase)
                if not item.length:
                    yield from self._text(item, _texts(given.get("content")))
            case "function_call":
                yield from self._named(item, given)
                yield from self._argued(item, plain_text(given.get("arguments")))
            case "reasoning":
                if not item.has_thoughts:
                    thoughts = map(_texts, (given.get("summary"), given.get("content")))
                    yield from self._think(item, (), BETWEEN.join(filter(None, thoughts)))
                yield from self._reasoning(item, given)

    def _argued(self, item: _Item, whole: str) -> Iterator[Chunk]:
        """Compare the arguments with their pieces: where they say two things, nobody knows which was meant."""
        pieces, item.is_whole = "".join(item.arguments), True
        if not pieces:
            yield from self._argue(item, whole)
        elif whole not in ("", pieces) and _spelling(whole) != _spelling(pieces):
            raise ValueError("a call's arguments do not match their pieces")

    def _reasoning(self, item: _Item, given: dict[str, Any]) -> Iterator[Chunk]:
        """Keep reasoning that the server can read again; the rest it would not find."""
        secret = plain_text(given.get("encrypted_content"))
        found: Item = {"type": "reasoning", "id": plain_text(given.get("id"))}
        found["summary"] = [{"type": "summary_text", "text": storable(text)} for text in _each(given.get("summary"))]
        if secret:
            found["encrypted_content"] = secret
        elif given.get("content"):
            found["content"] = [{"type": "reasoning_text", "text": storable(text)} for text in _each(given["content"])]
        else:
            return
        self._keeps = True
        delta: dict[str, Any] = {KEPT: {str(item.place): found}}
        yield _delta(**delta)

    def _end(self, how: str, response: dict[str, Any]) -> Iterator[Chunk]:
        if not self._items:
            for place, given in enumerate(response.get("output") or []):
                yield from self._done(place, given)
        yield {"usage": _usage(response.get("usage"))}
        if how not in ("completed", "incomplete"):
            raise _failure(response.get("error") or {"message": f"the response is {how}"})
        calls = [item for item in self._items if item.kind == "function_call"]
        reason = "tool_calls" if calls else "stop"
        if how == "incomplete":
            details = response.get("incomplete_details") or {}
            reason = "content_filter" if details.get("reason") == "content_filter" else "length"
        elif not all(call.is_whole for call in calls):
            # Without a reason the answer counts as not complete.
            return
        delta: dict[str, Any] = {KEPT: self._order()} if self._keeps else {}
        yield _delta(reason, **delta)

    def _order(self) -> dict[str, Item]:
        """Return the places of what the message itself says."""
        found: dict[str, Item] = {}
        for item in self._items:
            if item.kind == "message" and item.length:
                found[str(item.place)] = {"type": "message", "length": item.length, "phase": item.phase}
            elif item.kind == "function_call":
                found[str(item.place)] = {"type": "function_call"}
        return found


def _failure(given: dict[str, Any]) -> Failure:
    body = {name: given.get(name) for name in ("code", "message")}
    return Failure(body, str(body["message"] or "It does not say why."))


def _spelling(written: str) -> str:
    return canonical.dumps(canonical.loads(written))


def _texts(parts: Any) -> str:
    return BETWEEN.join(filter(None, _each(parts)))


def _each(parts: Any) -> list[str]:
    """Return the texts of parts, or why the model refuses."""
    return [plain_text(part.get("text", part.get("refusal"))) for part in parts or ()]


def _delta(reason: str | None = None, **delta: Any) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _part_of_call(item: _Item, *, id: str = "", name: str = "", arguments: str = "") -> Chunk:
    function = {"name": name, "arguments": arguments}
    return _delta(tool_calls=[{"index": item.place, "id": id, "function": function}])


def _usage(counts: Any) -> dict[str, Any] | None:
    """Return token counts by the names that Chat Completions have for them."""
    if not isinstance(counts, dict) or "input_tokens" not in counts:
        return None
    return {
        "prompt_tokens": counts["input_tokens"],
        "completion_tokens": counts.get("output_tokens"),
        "prompt_tokens_details": counts.get("input_tokens_details"),
        "completion_tokens_details": counts.get("output_tokens_details"),
    }
