"""What a tool must fit to be offered at all, whoever wants it."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hitlchat.base import canonical
from hitlchat.base.visible import see
from hitlchat.gate.schema import BadSchema, check_schema
from hitlchat.upstreams.judge import recursion
from hitlchat.upstreams.judge.offered import Offered

LONGEST_NAME = 128
LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 20_000
MOST_SCHEMA_BYTES = 64 * 1024
MOST_HINT_BYTES = 4 * 1024
MOST_LEVELS = 32
# Of schemas, what their checks said, by their hash: checking takes far longer than all else that is done with a tool,
# and a server that has thousands of tools may list them again with nothing changed but a description.
MOST_REMEMBERED = 20_000
_said: dict[tuple[str, "tuple[Check, ...]"], str] = {}


@dataclass(frozen=True)
class Problem:
    """Why a tool cannot be offered. `where` is a member of the definition: `name`, `inputSchema`, …"""

    where: str
    sentence: str


def problems(tool: Offered) -> tuple[Problem, ...]:
    """Empty if the tool can be offered. Takes a bounded time, whatever was sent."""
    return tuple(_problems(tool))


def _problems(tool: Offered) -> Iterator[Problem]:
    yield from _name(tool.name)
    yield from _length("title", tool.title or "", LONGEST_TITLE)
    yield from _length("description", tool.description or "", LONGEST_DESCRIPTION)
    if tool.annotations is not None:
        yield from _first("annotations", tool.annotations, MOST_HINT_BYTES, ())
    yield from _first("inputSchema", tool.input_schema, MOST_SCHEMA_BYTES, (_of_an_object, _valid, _bounded))
    if tool.output_schema is not None:
        yield from _first("outputSchema", tool.output_schema, MOST_SCHEMA_BYTES, (_valid, _bounded))


def _name(name: str) -> Iterator[Problem]:
    if not name.strip():
        yield Problem("name", "It has no name.")
    elif len(name) > LONGEST_NAME:
        yield Problem("name", f"The name has {len(name):,} characters; expected at most {LONGEST_NAME}.")
    elif any(piece.hidden for piece in see(name).pieces) or set(name) & set("\n\t"):
        yield Problem("name", "The name has characters that cannot be seen.")


def _length(where: str, text: str, most: int) -> Iterator[Problem]:
    if len(text) > most:
        yield Problem(where, f"The {where} has {len(text):,} characters; expected at most {most:,}.")


Check = Callable[[Mapping[str, Any]], str | None]


def _first(where: str, value: Mapping[str, Any], most: int, checks: tuple[Check, ...]) -> Iterator[Problem]:
    """The first problem only: each check may rely on those before it."""
    if sentence := _sentence(value, most, checks):
        yield Problem(where, sentence)


def _sentence(value: Mapping[str, Any], most: int, checks: tuple[Check, ...]) -> str:
    levels = _levels(value)
    if levels > MOST_LEVELS:
        return f"It is nested more than {MOST_LEVELS} levels deep."
    try:
        text = canonical.dumps(value)
    except canonical.NotJson as error:
        return f"It is {str(error)[:200]}."
    if len(text) > most:
        return f"It is {len(text):,} bytes long; expected at most {most:,}."
    return _checked(value, text, checks)


def _checked(value: Mapping[str, Any], text: str, checks: tuple[Check, ...]) -> str:
    key = hashlib.sha256(text.encode()).hexdigest(), checks
    if (known := _said.get(key)) is not None:
        return known
    if len(_said) >= MOST_REMEMBERED:
        _said.clear()
    found = _said[key] = next(filter(None, (check(value) for check in checks)), "")
    return found


def _levels(value: Any) -> int:
    """How deep it is nested; beyond the limit it is not looked at further."""
    level, count = [value], 0
    while level and count <= MOST_LEVELS:
        count += 1
        level = [child for parent in level for child in _children(parent)]
    return count


def _children(value: Any) -> list[Any]:
    found = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [child for child in found if isinstance(child, Mapping | list)]


def _of_an_object(schema: Mapping[str, Any]) -> str | None:
    return None if schema.get("type") == "object" else 'It is not for an object: expected "type": "object".'


def _valid(schema: Mapping[str, Any]) -> str | None:
    try:
        check_schema(dict(schema))
    except BadSchema as error:
        return f"It is not valid JSON Schema (draft 2020-12): {error}."
    return None


def _bounded(schema: Mapping[str, Any]) -> str | None:
    try:
        recursion.check(schema)
    except recursion.Unbounded as error:
        return f"It cannot be checked: {error}."
    return None
