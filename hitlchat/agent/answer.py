"""The answer of a model: streamed, its pieces read whatever dialect the server writes."""

import re
import secrets
import string
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from hitlchat.agent.model_client import ModelTrouble
from hitlchat.base import canonical
from hitlchat.base.canonical import storable

LONGEST_ID: Final = 200
# What one answer may hold; beyond it, it is cut off: a model server must not be able to fill this one.
MOST_CALLS: Final = 32
LONGEST_ANSWER: Final = 1_000_000
# An answer that ended so may lack the end of a call, or what would have taken it back.
CUT_SHORT: Final = frozenset({"content_filter", "error", "length"})
# Some servers take no other ids.
ID_LENGTH, ID_CHARACTERS = 9, string.ascii_letters + string.digits
# What Chat Completions have in a message and in a call. Whatever else a server adds, it may want back.
OF_A_MESSAGE: Final = frozenset({"content", "function_call", "refusal", "role", "tool_calls"})
OF_A_CALL: Final = frozenset({"function", "id", "index", "type"})
# What servers call the thoughts of a model, the plainest first.
REASONING: Final = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
# Texts that say what an entry of a list is, and so never go on.
_NAMES: Final = frozenset({"format", "id", "type"})
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
# How models write calls, which most servers read out of the text.
_WRITTEN_CALL = re.compile(
    r"<tool_call>.*</tool_call>\s*\Z|\A\s*(?:\[TOOL_CALLS\]|<function=|<\|python_tag\|>)", re.DOTALL
)
WRITTEN = (
    "The model wrote a call as text, which hitlchat does not execute. Switch on the parser of tool calls at the model "
    "server, or choose a model that can call tools."
)


# The pieces of fields, by their names.
Pieces = dict[str, list[Any]]


@dataclass
class ModelCall:
    """A call as the model wrote it; `arguments` is text that may or may not be JSON."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: Pieces = field(default_factory=dict)
    # What follows in the arguments: a text that grows with every piece takes time with its square.
    more: list[str] = field(default_factory=list)

    def ends_with(self, end: str) -> bool:
        return (self.more[-1] if self.more else self.arguments).endswith(end)

    def settle(self) -> None:
        """Put the pieces of the arguments together."""
        self.arguments += "".join(self.more)
        self.more.clear()

    def wire(self, *, with_extra: bool = False) -> dict[str, Any]:
        # Servers refuse a history with names or arguments that can't be; the tool message says what was wrong.
        name = _NOT_IN_NAMES.sub("_", self.name)[:64] or "unknown"
        extra = _whole(self.extra) if with_extra else {}
        return {"id": self.id, "type": "function", "function": {"name": name, "arguments": self._parsable()}} | extra

    def _parsable(self) -> str:
        try:
            parsed = canonical.loads(self.arguments or "{}")
        except canonical.NotJson:
            return "{}"
        return storable(self.arguments) if self.arguments and isinstance(parsed, dict) else "{}"


@dataclass(frozen=True)
class Tokens:
    """The tokens of one request and its answer; `cached` are of the input, `reasoning` of the output."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0


@dataclass
class Answer:
    """`extra`: what the server added to the message and, in each call, to the call."""

    text: str = ""
    calls: list[ModelCall] = field(default_factory=list)
    finish_reason: str = ""
    extra: Pieces = field(default_factory=dict)
    tokens: Tokens | None = None

    @property
    def reasoning(self) -> str:
        """Thoughts that the model had first, of a server that tells them: as a text, or a list of summaries."""
        found = next((self.extra[name] for name in REASONING if name in self.extra), [])
        joined = _joined(found) if found else ""
        if isinstance(joined, list):
            joined = "\n\n".join(_thought(entry) for entry in joined if isinstance(entry, dict))
        return joined.strip() if isinstance(joined, str) else ""

    @property
    def has_extra(self) -> bool:
        return bool(self.extra) or any(call.extra for call in self.calls)

    def wire(self, *, with_extra: bool = False) -> dict[str, Any]:
        # Null is how Chat Completions say that there is no text; some servers refuse an empty one.
        message: dict[str, Any] = {"role": "assistant", "content": self.text if self.text.strip() else None}
        if with_extra:
            message |= _whole(self.extra)
        if self.calls:
            message["tool_calls"] = [call.wire(with_extra=with_extra) for call in self.calls]
        return message


class Reading:
    """An answer while it is read. Whatever has another shape than Chat Completions say raises what Python raises."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls = _Calls()
        self._extra: Pieces = {}
        self._reason = ""
        self._size = 0
        # None: the server has told none so far.
        self.tokens: Tokens | None = None

    def feed(self, chunk: dict[str, Any]) -> str:
        """Return the text in `chunk`. ModelTrouble: the answer is too large."""
        self.tokens = _tokens(chunk) or self.tokens
        # Pings, token counts and reports of filters come as chunks that carry nothing.
        for choice in (chunk.get("choices") or [])[:1]:
            self._reason = choice.get("finish_reason") or self._reason
            return self._read(choice["delta"] if "delta" in choice else self._unless_begun(choice.get("message")))
        return ""

    def answer(self) -> Answer:
        """ModelTrouble: it is not whole, or says nothing."""
        text, calls = "".join(self._text), self._calls.found
        for call in calls:
            call.settle()
        if not self._reason:
            raise ModelTrouble("The model server ended its answer before it was complete. Try again.")
        if not calls and not text.strip():
            raise ModelTrouble(f"The model's answer was empty ({storable(str(self._reason))[:40]}). Try again.")
        if not calls and _is_written_call(text):
            raise ModelTrouble(WRITTEN)
        return Answer(text, _named(calls), self._reason, self._extra, self.tokens)

    def so_far(self) -> Answer:
        """Return what has come without its calls, which may lack their end."""
        return Answer("".join(self._text), extra={name: list(pieces) for name, pieces in list(self._extra.items())})

    def _unless_begun(self, message: dict[str, Any] | None) -> dict[str, Any] | None:
        """Some servers do not stream; of those that do, some send at the end once more what they have streamed."""
        return None if self._text or self._calls.found else message

    def _read(self, delta: dict[str, Any] | None) -> str:
        delta = delta or {}
        self._size += _keep(self._extra, delta, OF_A_MESSAGE) + _keep(self._extra, _thinking(delta), frozenset())
        for part in delta.get("tool_calls") or ():
            function = part.get("function") or {}
            arguments = _arguments(function.get("arguments"))
            call = self._calls.feed(part.get("index"), part.get("id"), function.get("name"), arguments)
            self._size += len(arguments) + _keep(call.extra, part, OF_A_CALL)
        text = storable(_content(delta))
        self._size += len(text)
        self._check_size()
        if text:
            self._text.append(text)
        return text

    def _check_size(self) -> None:
        if len(self._calls.found) > MOST_CALLS:
            raise ModelTrouble(f"The model asked for more than {MOST_CALLS} calls at once; none of them was made.")
        if self._size > LONGEST_ANSWER:
            raise ModelTrouble(f"The model's answer grew beyond {LONGEST_ANSWER:,} characters and was cut off.")


class _Calls:
    """Puts streamed tool calls together: repeated ids and names, missing or equal indexes, interleaved deltas. No two
    calls ever become one that the model did not make.
    """

    def __init__(self) -> None:
        self.found: list[ModelCall] = []
        self._by_index: dict[int, ModelCall] = {}
        self._looked = 0

    def feed(self, index: int | None, id: str | None, name: str | None, arguments: str) -> ModelCall:
        """Return the call that the fragment belongs to."""
        call = self._current(index, id)
        if call is None or self._begins_another(call, id, name):
            call = ModelCall()
            self.found.append(call)
            if index is not None:
                self._by_index[index] = call
        call.id = call.id or id or ""
        call.name = name or call.name
        if arguments:
            call.more.append(arguments)
        return call

    def _current(self, index: int | None, id: str | None) -> ModelCall | None:
        """Return the call that the fragment goes on with, as far as index and id say; an index counts for more."""
        if index is not None:
            return self._by_index.get(index)
        if id:
            return next((call for call in self.found if call.id == id), None)
        return self.found[-1] if self.found else None

    def _begins_another(self, call: ModelCall, id: str | None, name: str | None) -> bool:
        if not name or not call.name:
            return False
        if id and call.id:
            return id != call.id
        return name != call.name or self._is_whole(call)

    def _is_whole(self, call: ModelCall) -> bool:
        """Tell a second call of the same tool from a name that each fragment repeats, where no id does."""
        if not call.ends_with("}"):
            return False
        call.settle()
        self._looked += 1
        # Each look reads the arguments again.
        if self._looked > 2 * MOST_CALLS:
            raise ModelTrouble("The calls of the model's answer cannot be told apart; none of them was made.")
        return _object(call.arguments) is not None


def _content(delta: dict[str, Any]) -> str:
    """Return what a delta says to the person: text, parts of text, or why the model refuses."""
    content = delta.get("content") or delta.get("refusal") or ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


def _thinking(delta: dict[str, Any]) -> dict[str, str]:
    """Return the thoughts that come as parts of the content, under the usual name."""
    content = delta.get("content")
    parts = [part for part in content if part.get("type") == "thinking"] if isinstance(content, list) else []
    thoughts = [part.get("thinking") or "" for part in parts]
    said = "".join(
        each if isinstance(each, str) else "".join(one.get("text") or "" for one in each) for each in thoughts
    )
    return {REASONING[0]: said} if said else {}


def _arguments(written: str | dict[str, Any] | None) -> str:
    """Return the arguments as text; some servers send the object itself."""
    if not isinstance(written, dict | str | None):
        raise TypeError(f"expected arguments as text, not {type(written).__name__}")
    return canonical.pretty(written) if isinstance(written, dict) else written or ""


def _named(calls: list[ModelCall]) -> list[ModelCall]:
    """Every call needs an id of its own, since its result is matched by it."""
    seen: set[str] = set()
    for call in calls:
        if not 0 < len(call.id) <= LONGEST_ID or call.id in seen:
            call.id = "".join(secrets.choice(ID_CHARACTERS) for _ in range(ID_LENGTH))
        seen.add(call.id)
        call.id, call.name = storable(call.id), storable(call.name)
    return calls


def _is_written_call(text: str) -> bool:
    found = _object(text) or {}
    return bool(_WRITTEN_CALL.search(text)) or found.keys() in ({"name", "arguments"}, {"name", "parameters"})


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = canonical.loads(text)
    except canonical.NotJson:
        return None
    return found if isinstance(found, dict) else None


MOST_TOKENS: Final = 2_000_000_000


def _tokens(chunk: dict[str, Any]) -> Tokens | None:
    """Return the token counts of a chunk; None where it has none. Groq has them in a place of its own."""
    groq = chunk.get("x_groq")
    usage = chunk.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
    if not isinstance(usage, dict) or "prompt_tokens" not in usage:
        return None
    return Tokens(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(usage.get("prompt_tokens_details"), "cached_tokens") or _count(usage, "prompt_cache_hit_tokens"),
        _count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count(counts: Any, name: str) -> int:
    """Return a number of tokens that can be one; 0 for whatever else a server sends."""
    found = counts.get(name) if isinstance(counts, dict) else None
    return min(max(found, 0), MOST_TOKENS) if type(found) is int else 0


# -- What a server adds ------------------------------------------------------------------------------------------------


def _keep(kept: Pieces, added: dict[str, Any], known: frozenset[str]) -> int:
    """Put what is in `added` and not `known` with what came before of it. Return roughly how many characters it is."""
    size = 0
    for name in added.keys() - known:
        if (value := added[name]) not in (None, "", [], {}):
            kept.setdefault(name, []).append(value)
            size += len(name) + len(value if isinstance(value, str) else canonical.dumps(value))
    return size


def _whole(kept: Pieces) -> dict[str, Any]:
    return {name: _joined(pieces) for name, pieces in kept.items()}


def _joined(pieces: list[Any]) -> Any:
    """Texts and lists go on with each piece, objects by their keys; of anything else the last piece counts."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    if all(isinstance(piece, dict) for piece in pieces):
        return _merged(pieces)
    if all(isinstance(piece, list) for piece in pieces):
        return _entries(pieces)
    return pieces[-1]


def _thought(entry: dict[str, Any]) -> str:
    """Return the text of one block of thoughts, or of its summary; of an encrypted one there is none."""
    found = next((entry[name] for name in ("text", "summary", "thinking") if entry.get(name)), "")
    return found if isinstance(found, str) else ""


def _merged(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for piece in pieces:
        for name, value in piece.items():
            before = found.get(name)
            found[name] = _merged([before, value]) if isinstance(before, dict) and isinstance(value, dict) else value
    return found


def _entries(pieces: list[list[Any]]) -> list[Any]:
    """Join the fragments of each entry, such as a block of thoughts: they say alike what they belong to."""
    groups: list[list[Any]] = []
    for entry in chain.from_iterable(pieces):
        if groups and _goes_on(groups[-1][-1], entry):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return [_entry(group) if len(group) > 1 else group[0] for group in groups]


def _goes_on(before: Any, entry: Any) -> bool:
    if not (isinstance(before, dict) and isinstance(entry, dict)) or before.get("signature"):
        return False
    return all(before.get(name) == entry.get(name) for name in ("type", "index"))


def _entry(fragments: list[dict[str, Any]]) -> dict[str, Any]:
    named: Pieces = {}
    for name, value in chain.from_iterable(fragment.items() for fragment in fragments):
        if value is not None:
            named.setdefault(name, []).append(value)
    return {name: pieces[-1] if name in _NAMES else _joined(pieces) for name, pieces in named.items()}
