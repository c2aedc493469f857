"""The regular expressions of a schema, which an upstream wrote and which would be run on whatever a model sends.

Python's engine backtracks: a short pattern can keep it busy for years. The engine of pydantic (Rust's `regex`) takes
time linear in the text, and in return knows no look-around and no back-references. A pattern that it does not take, or
that is very large, is left to the upstream, which checks its arguments itself. Patterns of property names are run by
jsonschema itself, in Python's engine, so of those only the plainest are kept.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hitlchat.base import canonical, expressions
from hitlchat.base.expressions import MOST_PATTERNS, MOST_STEPS_IN_SCHEMA, is_costly, steps
from hitlchat.upstreams.judge import pointer
from hitlchat.upstreams.judge.keywords import subschemas

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
        if pointer.step(part.where, "pattern") in left:
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
                yield pointer.step(part.where, "pattern")
        for key in _costly_keys(part.schema):
            yield pointer.step(pointer.step(part.where, "patternProperties"), key)


def _costly_keys(schema: Mapping[str, Any]) -> list[str]:
    named = schema.get("patternProperties")
    return [key for key in named if not _PLAIN.fullmatch(key)] if isinstance(named, dict) else []
