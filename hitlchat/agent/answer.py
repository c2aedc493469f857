"""The answer of a model: streamed, its pieces and calls put together whatever dialect the server writes."""

import re
import secrets
import string
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, Final

from hitlchat.agent.model_client import ModelTrouble
from hitlchat.base import canonical
from hitlchat.base.canonical import storable

LONGEST_ID: Final = 200
# What one answer may hold; beyond it, it is cut off: a model server must not be able to fill this one.
LONGEST_ANSWER: Final = 1_000_000
# How servers say that an answer is whole. One that ended otherwise may lack the end of a call, or what would have taken
# it back.
WHOLE: Final = frozenset(
    {
        *("stop", "stop_sequence", "stop_string", "stop_token"),
        *("tool_call", "tool_calls", "tool_use", "function_call", "function_calls"),
        *("end", "end_of_turn", "end_turn", "eos", "eos_token", "eot"),
        *("complete", "completed", "done", "finish", "finished"),
    }
)
# How some say that it goes on.
NO_REASON: Final = frozenset({"", "none", "null"})
LONGEST_REASON: Final = 40
# Some servers take no other ids.
ID_LENGTH, ID_CHARACTERS = 9, string.ascii_letters + string.digits
# What Chat Completions have in a message and in a call. Whatever else a server adds, it may want back.
OF_A_MESSAGE: Final = frozenset({"content", "function_call", "refusal", "role", "tool_calls"})
OF_A_CALL: Final = frozenset({"arguments", "function", "id", "index", "name", "type"})
# What servers call the thoughts of a model, the plainest first.
REASONING: Final = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
# Texts that say what an entry of a list is, and so never go on.
_NAMES: Final = frozenset({"format", "id", "type"})
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_NOT_IN_WORDS = re.compile(r"[^a-z]+")
# The id of the call that has none, and the reason of an answer that has none.
OLD: Final = "function_call"
NO_WORD: Final = "stop"
# How models write calls, which most servers read out of the text.
_WRITTEN_CALL = re.compile(
    r"<tool_call>.*</tool_call>\s*\Z|\A\s*(?:\[TOOL_CALLS\]|<function=|<\|python_tag\|>)", re.DOTALL
)
# Thoughts that a server leaves in the text, before the answer.
# Blanks and half a tag, after which no thoughts are waited for.
LONGEST_LEAD: Final = 200
_THINK, _THOUGHT = "<think>", "</think>"
_WRITTEN_THOUGHTS = re.compile(rf"\A\s*{_THINK}(.*?){_THOUGHT}\s*", re.DOTALL)
# The same while they come.
_THOUGHTS_SO_FAR = re.compile(rf"\A\s*{_THINK}(.*?)(?:{_THOUGHT}\s*|\Z)", re.DOTALL)
WRITTEN = (
    "The model wrote a call as text, which hitlchat does not execute. Turn on tool-call parsing on the "
    "model server, or choose a model that can call tools."
)
# What a server adds, in the pieces in which it comes.
Extra = dict[str, list[Any]]
MOST_TOKENS: Final = 2_000_000_000
# So many calls of one answer are made; of so many the model is told which were not.
MOST_CALLS: Final = 32
MOST_REQUESTED: Final = 128


@dataclass
class ModelCall:
    """A call as the model wrote it; `arguments` is text that may or may not be JSON."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: Extra = field(default_factory=dict)

    def wire(self, *, with_extra: bool = False) -> dict[str, Any]:
        # Servers refuse a history with names or arguments that can't be; the tool message says what was wrong.
        name = _NOT_IN_NAMES.sub("_", self.name)[:64] or "unknown"
        parsed, arguments = object_in(self.arguments), self.arguments
        if parsed is None:
            arguments = "{}"
        elif (whole := canonical.whole(parsed)) != parsed:
            # A reader of JSON may take no half of a character, however it is spelled.
            arguments = canonical.pretty(whole)
        extra = _joined_all(self.extra) if with_extra else {}
        return {"id": self.id, "type": "function", "function": {"name": name, "arguments": arguments}} | extra


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
    extra: Extra = field(default_factory=dict)
    tokens: Tokens | None = None

    @property
    def reasoning(self) -> str:
        """Thoughts that the model had first, of a server that tells them: as a text, or a list of summaries."""
        found = next((self.extra[name] for name in REASONING if name in self.extra), [])
        joined = _joined(found) if found else ""
        if isinstance(joined, list):
            # The text of each block of thoughts, or of its summary; of an encrypted one there is none.
            blocks = [each for each in joined if isinstance(each, dict)]
            texts = [next((each[n] for n in ("text", "summary", "thinking") if each.get(n)), "") for each in blocks]
            joined = "\n\n".join(text if isinstance(text, str) else "" for text in texts)
        return joined.strip() if isinstance(joined, str) else ""

    @property
    def is_whole(self) -> bool:
        """Return whether its server says so, in a word that is known: what is not whole is not acted upon."""
        return _NOT_IN_WORDS.sub("_", self.finish_reason.lower()).strip("_") in WHOLE

    def wire(self, *, with_extra: bool = False) -> dict[str, Any]:
        # Null is how Chat Completions say that there is no text; some servers refuse an empty one.
        message: dict[str, Any] = {"role": "assistant", "content": self.text if self.text.strip() else None}
        if with_extra:
            message |= _joined_all(self.extra)
        if self.calls:
            message["tool_calls"] = [call.wire(with_extra=with_extra) for call in self.calls]
        return message


@dataclass
class Pieces:
    """A call as it comes: id, name and the pieces of its arguments, which are text that may or may not be JSON."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def whole(self) -> str:
        """Return the arguments: their pieces one after the other or, of a server that sends with each piece all that
        came before or at last all of it, the last one. The same pieces never make an object both ways.
        """
        joined, last = "".join(self.arguments), self.arguments[-1] if self.arguments else ""
        is_all = self.is_growing or "".join(self.arguments[:-1]) == last
        if len(self.arguments) > 1 and is_all and object_in(joined) is None and object_in(last) is not None:
            joined = last
        # What came as two halves of a character is one.
        return joined.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    @property
    def is_growing(self) -> bool:
        return len(self.arguments) > 1 and all(more.startswith(less) for less, more in pairwise(self.arguments))


class Calls:
    """Puts streamed tool calls together: repeated ids and names, missing or equal indexes, interleaved deltas. No two
    calls ever become one that the model did not make.
    """

    def __init__(self) -> None:
        self.found: list[Pieces] = []
        self._by_index: dict[int, Pieces] = {}
        self._looked = 0

    def feed(self, part: dict[str, Any], *, is_next: bool = False) -> tuple[Pieces, int]:
        """Return the call that the fragment belongs to, and how many characters of arguments it has. `is_next`: it
        stands behind another in the same list.
        """
        # Some servers leave one level out.
        function = part.get("function") or part
        given, call_id, name = part.get("index"), part.get("id"), plain_text(function.get("name"))
        index = None if given is None else int(given)
        # Of some servers the id is a number.
        call_id = str(call_id) if isinstance(call_id, int) else plain_text(call_id)
        arguments = function.get("arguments", function.get("parameters"))
        # Some servers send the object itself.
        arguments = canonical.pretty(arguments) if isinstance(arguments, dict) else plain_text(arguments)
        call = self._current(index, call_id)
        is_apart = is_next and index is None and not call_id and bool(name)
        if call is None or is_apart or self._begins_another(call, call_id, name, arguments):
            call = Pieces()
            self.found.append(call)
            if index is not None:
                self._by_index[index] = call
        call.id = call.id or call_id
        # Some servers repeat the name, some send all of it so far, some send it in pieces.
        call.name = name if name.startswith(call.name) else call.name + name
        if arguments:
            call.arguments.append(arguments)
        return call, len(arguments)

    def _current(self, index: int | None, call_id: str) -> Pieces | None:
        """Return the call that the fragment goes on with, as far as index and id say; an index counts for more."""
        if index is not None:
            return self._by_index.get(index)
        if call_id:
            return next((call for call in self.found if call.id == call_id), None)
        return self.found[-1] if self.found else None

    def _begins_another(self, call: Pieces, call_id: str, name: str, arguments: str) -> bool:
        if not name or not call.name:
            return False
        if call_id and call.id:
            return call_id != call.id or (not name.startswith(call.name) and self._is_whole(call))
        if name == call.name:
            is_growing = call.is_growing and arguments.startswith(call.arguments[-1])
            return self._is_whole(call) and not is_growing
        # A name goes on only before the arguments begin.
        return bool(call.arguments) or not (name.startswith(call.name) or call.id)

    def _is_whole(self, call: Pieces) -> bool:
        """Tell a second call of the same tool from a name that each fragment repeats, where no id does."""
        if not call.arguments or not call.arguments[-1].rstrip().endswith("}"):
            return False
        self._looked += 1
        # Each look reads the arguments again.
        if self._looked > 2 * MOST_CALLS:
            why = "The calls in the model's answer cannot be told apart, so none was made."
            raise ModelTrouble(why)
        return object_in(call.whole) is not None


class Reading:
    """An answer while it is read. Whatever has another shape than Chat Completions say raises what Python raises."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls = Calls()
        # The one call that servers had before there were several.
        self._function = Calls()
        self._extra: Extra = {}
        self._reason = ""
        self._is_over = False
        self._has_deltas = False
        self._length = 0
        # What has come before the answer and may belong to thoughts: of these only their end counts.
        self._head = ""
        self._is_thinking = self._is_answering = False
        # The first half of a character whose other half is still to come.
        self._half = ""
        self._size = 0
        # None: the server has told none so far.
        self.tokens: Tokens | None = None
        # What the server says beside the answer: why there is none, if none comes.
        self.aside: dict[str, Any] | None = None

    def feed(self, chunk: dict[str, Any]) -> str:
        """Return the text of the answer in `chunk`, without thoughts before it. ModelTrouble: it is too large."""
        self.tokens = _tokens(chunk) or self.tokens
        if not chunk.get("choices") and isinstance(chunk.get("message"), str):
            self.aside = chunk
        # Pings, token counts and reports of filters come as chunks that carry nothing.
        for choice in (chunk.get("choices") or [])[:1]:
            # An answer that is not whole does not become so.
            reason = _reason(choice.get("finish_reason"))
            if reason and (not self._reason or Answer(finish_reason=self._reason).is_whole):
                self._reason = reason
            return self._read(self._delta(choice) or {})
        return ""

    def end(self) -> None:
        """Note that the server says that the stream is over, which some do without a reason."""
        self._is_over = True

    @property
    def has_ended(self) -> bool:
        return bool(self._reason) or self._is_over

    def answer(self) -> Answer:
        """ModelTrouble: it is not whole, or says nothing."""
        # Each with an id of its own in this answer, since its result is matched by it.
        seen: set[str] = set()
        calls = []
        for each in self._all():
            call_id = storable(each.id)
            if not 0 < len(call_id) <= LONGEST_ID or call_id in seen or call_id == OLD:
                call_id = "".join(secrets.choice(ID_CHARACTERS) for _ in range(ID_LENGTH))
            seen.add(call_id)
            calls.append(ModelCall(call_id, storable(each.name), each.whole, each.extra))
        text = storable("".join(self._text) + self._half)
        is_readable = all(object_in(call.arguments or "{}") is not None for call in calls)
        reason = self._reason or (NO_WORD if self._is_over and is_readable else "")
        if not reason:
            raise ModelTrouble("The model server ended its answer before it was complete. Try again.")
        if thoughts := _WRITTEN_THOUGHTS.match(text):
            self._extra.setdefault(REASONING[0], []).append(thoughts[1])
            text = text[thoughts.end() :]
        answer = Answer(text, calls, reason, self._extra, self.tokens)
        is_object = (object_in(text) or {}).keys() in ({"name", "arguments"}, {"name", "parameters"})
        if not calls and (is_object or _WRITTEN_CALL.search(text.strip() or answer.reasoning)):
            raise ModelTrouble(WRITTEN)
        if not calls and not text.strip():
            raise ModelTrouble(f"The model's answer was empty ({reason}). Try again.")
        return answer

    def so_far(self) -> Answer:
        """Return what has come without its calls, which may lack their end."""
        text, extra = "".join(self._text), {name: list(pieces) for name, pieces in list(self._extra.items())}
        if thoughts := _THOUGHTS_SO_FAR.match(text):
            extra.setdefault(REASONING[0], []).append(thoughts[1])
            text = text[thoughts.end() :]
        return Answer(text, extra=extra)

    def _delta(self, choice: dict[str, Any]) -> dict[str, Any] | None:
        """Return what is new in a choice. Some servers do not stream, or stream messages that go on or have all so far;
        of those that stream deltas, some send at the end once more what they have streamed.
        """
        if "delta" in choice:
            self._has_deltas = True
            return choice["delta"] or {}
        message: dict[str, Any] = choice.get("message") or {}
        if self._has_deltas:
            return None if self._text or self._all() else message
        content = _content(message)
        if len(content) >= self._length > 0 and content.startswith(so_far := "".join(self._text)):
            return {**message, "content": content[len(so_far) :]}
        return message

    def _all(self) -> list[Pieces]:
        """Return the calls. Some servers tell the first of them in the old way, too."""
        return self._calls.found or self._function.found

    def _read(self, delta: dict[str, Any]) -> str:
        self._size += _gather(self._extra, delta, OF_A_MESSAGE)
        if isinstance(delta.get("content"), list):
            self._size += _gather(self._extra, _thinking(delta["content"]), frozenset())
        calls = delta.get("tool_calls") or ()
        for place, part in enumerate([calls] if isinstance(calls, dict) else calls):
            call, size = self._calls.feed(part, is_next=place > 0)
            self._size += size + _gather(call.extra, part, OF_A_CALL)
        if function := delta.get("function_call"):
            self._size += self._function.feed({"id": OLD, "function": function})[1]
        # All but half a character at the end.
        text, self._half = canonical.without_half(self._half + _content(delta))
        text = storable(text)
        self._size += len(text)
        self._length += len(text)
        if len(self._calls.found) > MOST_REQUESTED:
            raise ModelTrouble(f"The model requested more than {MOST_REQUESTED} calls at once, so none was made.")
        if self._size > LONGEST_ANSWER:
            raise ModelTrouble(f"The model's answer exceeded {LONGEST_ANSWER:,} characters and was cut off.")
        if text:
            self._text.append(text)
        return text if self._is_answering else self._answered(text)

    def _answered(self, text: str) -> str:
        """Return what of the next piece belongs to the answer. Tags may come in pieces."""
        self._head += text
        begun = self._head.lstrip()
        if not self._is_thinking:
            if _THINK.startswith(begun) and len(self._head) < LONGEST_LEAD:
                return ""
            self._is_thinking = begun.startswith(_THINK)
            if not self._is_thinking:
                self._is_answering = True
                return self._head
        _, closed, rest = begun.partition(_THOUGHT)
        self._is_answering = bool(rest := rest.lstrip())
        self._head = closed or begun[1 - len(_THOUGHT) :]
        return rest


def object_in(text: str) -> dict[str, Any] | None:
    try:
        found = canonical.loads(text)
    except canonical.NotJson:
        return None
    return found if isinstance(found, dict) else None


def plain_text(given: Any) -> str:
    """Return a text that may be missing. Raises: TypeError, if it is something else."""
    if not isinstance(given, str | None):
        raise TypeError(f"expected a text, not {type(given).__name__}")
    return given or ""


def _content(delta: dict[str, Any]) -> str:
    """Return what a delta says to the person: text, parts of text, or why the model refuses."""
    content = delta.get("content") or delta.get("refusal") or ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


def _thinking(content: list[Any]) -> dict[str, str]:
    """Return the thoughts that come as parts of the content, under the usual name."""
    thoughts = [part.get("thinking") or "" for part in content if part.get("type") == "thinking"]
    texts = [each if isinstance(each, str) else "".join(one.get("text") or "" for one in each) for each in thoughts]
    return {REASONING[0]: "".join(texts)} if any(texts) else {}


def _reason(given: Any) -> str:
    """Return why an answer ended, of any shape, or nothing while it goes on."""
    if given is None:
        return ""
    given = given.get("type") if isinstance(given, dict) else given
    reason = storable(str(given or ""))[:LONGEST_REASON]
    return "" if reason.lower() in NO_REASON else reason


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


def _gather(extra: Extra, added: dict[str, Any], usual: frozenset[str]) -> int:
    """Put what is in `added` and not `usual` with what came before of it. Return roughly how many characters it is."""
    size = 0
    for name in added.keys() - usual:
        if (value := added[name]) not in (None, "", [], {}):
            extra.setdefault(name, []).append(value)
            size += len(name) + len(value if isinstance(value, str) else canonical.dumps(value))
    return size


def _joined_all(extra: Extra) -> dict[str, Any]:
    return {name: _joined(pieces) for name, pieces in extra.items()}


def _joined(pieces: list[Any]) -> Any:
    """Texts and lists go on with each piece, objects by their keys; of anything else the last piece counts."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    if all(isinstance(piece, dict) for piece in pieces):
        return _merged(pieces)
    if all(isinstance(piece, list) for piece in pieces):
        return _entries(pieces)
    return pieces[-1]


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
        before: Any = groups[-1][-1] if groups else None
        are_blocks = isinstance(before, dict) and isinstance(entry, dict) and not before.get("signature")
        if are_blocks and all(before.get(name) == entry.get(name) for name in ("type", "index")):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return [_entry(group) if len(group) > 1 else group[0] for group in groups]


def _entry(fragments: list[dict[str, Any]]) -> dict[str, Any]:
    named: Extra = {}
    for name, value in chain.from_iterable(fragment.items() for fragment in fragments):
        if value is not None:
            named.setdefault(name, []).append(value)
    return {name: pieces[-1] if name in _NAMES else _joined(pieces) for name, pieces in named.items()}
