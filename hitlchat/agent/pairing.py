"""Calls and their results, as the strictest model servers want them in a request.

Every call has an id that no other of the conversation has, every tool message stands right behind its call and says
something, and every call has one. Models and servers repeat their ids; what is stored keeps them as they came.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hitlchat.agent.answer import ID_CHARACTERS, ID_LENGTH
from hitlchat.agent.models import Role
from hitlchat.base import canonical

# What the model reads of a call that gave nothing.
NO_OUTPUT: Final = "(no output)"
UNREADABLE: Final = (
    "hitlchat cannot read its record of this call: it may or may not have been executed. Do not repeat it."
)
_BEGIN: Final = '{"role": "'
_CALLS: Final = '"tool_calls": ['
_TOOL: Final = re.compile(r'\{"role": "tool", "tool_call_id": ("(?:[^"\\]|\\.)*"), "content": (".*")\}', re.DOTALL)
# White space as JSON has it in a text.
_BLANK: Final = re.compile(r'"(?:\s|\\[nrtf]|\\u000b|\\u001[c-f])*"')
# Of a surrogate within arguments, which are JSON within JSON.
_HALF: Final = re.compile(r"\\\\u[dD][89a-fA-F]")


def message(model_call_id: str, content: str) -> str:
    """Return the tool message of a call."""
    told = canonical.whole(content) if content.strip() else NO_OUTPUT
    return canonical.pretty({"role": "tool", "tool_call_id": canonical.whole(model_call_id), "content": told})


def paired(messages: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield role and text of serialised messages with calls and results in pairs; what cannot be read is left out."""
    pairing = _Pairing()
    for role, wire in messages:
        if role == Role.TOOL:
            yield from pairing.answer(wire)
            continue
        yield from pairing.close()
        if _CALLS in wire and role == Role.ASSISTANT:
            yield from pairing.begin(wire)
        elif wire.startswith(_BEGIN) and wire.endswith("}"):
            yield role, wire
    yield from pairing.close()


class _Pairing:
    def __init__(self) -> None:
        self._known: set[str] = set()
        # The calls of the last answer that have no tool message yet: their ids as stored, and as sent.
        self._open: list[tuple[str, str]] = []

    def begin(self, wire: str) -> Iterator[tuple[str, str]]:
        """Begin the results of an answer with calls."""
        try:
            read = json.loads(wire)
            functions = [call["function"] for call in read["tool_calls"]]
            ids = [str(call["id"]) for call in read["tool_calls"]]
            arguments = [_without_halves(function["arguments"]) for function in functions] if _HALF.search(wire) else []
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        sent = [self._own(each) for each in ids]
        self._open = list(zip(ids, sent, strict=True))
        if sent != ids or arguments:
            for call, own in zip(read["tool_calls"], sent, strict=True):
                call["id"] = own
            for function, whole in zip(functions, arguments, strict=False):
                function["arguments"] = whole
            wire = canonical.pretty(canonical.whole(read))
        yield Role.ASSISTANT, wire

    def answer(self, wire: str) -> Iterator[tuple[str, str]]:
        """Yield the tool message under the id of its call, if it has one."""
        if (found := _TOOL.fullmatch(wire)) is None:
            return
        stored = json.loads(found[1])
        place = next((at for at, (each, _) in enumerate(self._open) if each == stored), None)
        if place is None:
            return
        _, own = self._open.pop(place)
        is_blank = _BLANK.fullmatch(found[2]) is not None
        if own == stored and not is_blank:
            yield Role.TOOL, wire
        else:
            yield Role.TOOL, message(own, "" if is_blank else json.loads(found[2]))

    def close(self) -> Iterator[tuple[str, str]]:
        """Yield a tool message for each call that has none."""
        for _, own in self._open:
            yield Role.TOOL, message(own, UNREADABLE)
        self._open = []

    def _own(self, call_id: str) -> str:
        """Return an id that nothing else has: in every request of the conversation the same, so that caches hold."""
        own, tried = call_id, 1
        while own in self._known:
            tried += 1
            digest = hashlib.sha256(f"{tried} {call_id}".encode()).digest()
            own = "".join(ID_CHARACTERS[byte % len(ID_CHARACTERS)] for byte in digest[:ID_LENGTH])
        self._known.add(own)
        return own


def _without_halves(arguments: Any) -> Any:
    """Return arguments, as text, that every reader of JSON takes."""
    try:
        read = canonical.loads(arguments)
    except (canonical.NotJson, TypeError):
        return arguments
    return arguments if (whole := canonical.whole(read)) == read else canonical.pretty(whole)
