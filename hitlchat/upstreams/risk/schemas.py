"""Where in a JSON Schema other schemas stand, and which of its patterns are safe to run here.

The regular expressions of a schema, which an upstream wrote and which would be run on whatever a model sends.

Python's engine backtracks: a short pattern can keep it busy for years. The engine of pydantic (Rust's `regex`) takes
time linear in the text, and in return knows no look-around and no back-references. A pattern that it does not take, or
that is very large, is left to the upstream, which checks its arguments itself. Patterns of property names are run by
jsonschema itself, in Python's engine, so of those only the plainest are kept.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from hitlchat.base import canonical, expressions
from hitlchat.base.expressions import MOST_PATTERNS, MOST_STEPS_IN_SCHEMA, is_costly, steps


def step(where: str, key: str | int) -> str:
    """The place of the member or element `key` of what stands at `where`."""
    return f"{where}/{str(key).replace('~', '~0').replace('/', '~1')}"


def fragment(reference: str) -> str | None:
    """The pointer in a reference such as `#/$defs/node`; None if it leads elsewhere or is a plain name."""
    if not reference.startswith("#"):
        return None
    found = unquote(reference[1:])
    return found if found == "" or found.startswith("/") else None


Role = Literal["same", "below", "kept"]
"""`same`: checks the same value; `below`: a member or an element of it; `kept`: only when referred to."""

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"), "same"),
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"), "below"),
    **dict.fromkeys(("propertyNames", "items", "prefixItems", "contains", "unevaluatedItems"), "below"),
    **dict.fromkeys(("$defs", "definitions", "contentSchema"), "kept"),
}
_MAPS = {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
_LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}


@dataclass(frozen=True)
class Subschema:
    """A schema inside another: its place, itself (true and false as {}), and how its parent came to it."""

    where: str
    schema: dict[str, Any]
    role: Role = "kept"
    keyword: str = ""
    key: str = ""


def subschemas(schema: Mapping[str, Any]) -> Iterator[Subschema]:
    """`schema` itself and every schema in it, the outer ones first. What stands in `const` or `default` is none."""
    waiting = [Subschema("", dict(schema))]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(children(part))


def children(part: Subschema) -> Iterator[Subschema]:
    for keyword, role in _ROLES.items():
        value, where = part.schema.get(keyword), step(part.where, keyword)
        if keyword in _MAPS and isinstance(value, dict):
            for key, each in value.items():
                yield _child(step(where, key), each, role, keyword, key)
        elif keyword in _LISTS and isinstance(value, list):
            for index, each in enumerate(value):
                yield _child(step(where, index), each, role, keyword, str(index))
        elif isinstance(value, dict | bool):
            yield _child(where, value, role, keyword, "")


def _child(where: str, value: object, role: Role, keyword: str, key: str) -> Subschema:
    return Subschema(where, value if isinstance(value, dict) else {}, role, keyword, key)


_CLASS = r"(?:\.|\[[A-Za-z0-9_ .-]{1,40}\])"
# Letters, or after a leading ^ letters and one repetition: nothing to go back to.
_PLAIN = re.compile(rf"\^?[A-Za-z0-9_-]{{0,100}}\$?|\.[*+]?|\^[A-Za-z0-9_-]{{0,100}}{_CLASS}[*+]\$?")
# Of schemas, by their hash: what was judged once needs no compiling inside a transaction.
MOST_REMEMBERED = 20_000
_left: dict[str, tuple[str, ...]] = {}


def linear(pattern: str) -> bool:
    """Whether the linear engine takes it, and without much work."""
    return expressions.compiled(pattern) is not None


def left_to_the_server(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The places (JSON pointers) of patterns that cannot be checked here in linear time, or are too many or too large.

    Remembered: compiling may take twenty milliseconds. canonical.NotJson.
    """
    key = canonical.sha256(schema)
    if (known := _left.get(key)) is not None:
        return known
    if len(_left) >= MOST_REMEMBERED:
        _left.clear()
    found = _left[key] = tuple(_places(schema))
    return found


def checkable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` without the patterns that are left to the server: what values are checked against here.

    Where the names of properties were left to it, it is not said here either which others may be there.
    """
    found = dict(schema)
    left = set(left_to_the_server(schema))
    if not left:
        return found
    found = copy.deepcopy(found)
    for part in list(subschemas(found)):
        holder = found if part.where == "" else part.schema
        if step(part.where, "pattern") in left:
            del holder["pattern"]
        if keys := _costly_keys(holder):
            for key in keys:
                del holder["patternProperties"][key]
            for about_others in ("additionalProperties", "unevaluatedProperties"):
                holder.pop(about_others, None)
    return found


def _places(schema: Mapping[str, Any]) -> Iterator[str]:
    spent, count = 0, 0
    for part in subschemas(schema):
        pattern = part.schema.get("pattern")
        if isinstance(pattern, str):
            if is_small := not is_costly(pattern) and count < MOST_PATTERNS:
                spent, count = spent + steps(pattern), count + 1
            if not is_small or spent > MOST_STEPS_IN_SCHEMA or not linear(pattern):
                yield step(part.where, "pattern")
        for key in _costly_keys(part.schema):
            yield step(step(part.where, "patternProperties"), key)


def _costly_keys(schema: Mapping[str, Any]) -> list[str]:
    named = schema.get("patternProperties")
    return [key for key in named if not _PLAIN.fullmatch(key)] if isinstance(named, dict) else []
