"""Limits that a tool must fit to be offered at all; its schemas refer only to themselves, and never without bound."""

import copy
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from hitlchat.base import canonical, expressions
from hitlchat.base.expressions import MOST_PATTERNS, MOST_STEPS_IN_SCHEMA, is_costly, steps
from hitlchat.base.schemas import Subschema, children, fragment, keys, step, subschemas
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import see
from hitlchat.gate.schema import BadSchema, check_schema
from hitlchat.upstreams.risk.fingerprint import Offered

_CLASS = r"(?:\.|\[[A-Za-z0-9_ .-]{1,40}\])"
# Letters, or after a leading ^ letters and one repetition: nothing to go back to.
_PLAIN = re.compile(rf"\^?[A-Za-z0-9_-]{{0,100}}\$?|\.[*+]?|\^[A-Za-z0-9_-]{{0,100}}{_CLASS}[*+]\$?")
# Of schemas, by their hash: what was judged once needs no compiling inside a transaction.
MOST_REMEMBERED = 20_000
# In a sentence.
MOST_NAMED = 5
_left: dict[str, tuple[str, ...]] = {}


def linear(pattern: str) -> bool:
    """Return whether the linear engine takes it as its server does, and without much work."""
    return not expressions.is_ambiguous(pattern) and expressions.compiled(pattern) is not None


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


def unchecked(schema: Mapping[str, Any]) -> str:
    """Return a sentence about the patterns that are left to the server; empty if there are none. canonical.NotJson."""
    places = dict.fromkeys(_about(keys(place)) for place in left_to_the_server(schema))
    if not places:
        return ""
    more = [f"{len(places) - MOST_NAMED} more"] if len(places) > MOST_NAMED else []
    names = ", ".join([*list(places)[:MOST_NAMED], *more])
    return translatable(f"Only its server checks the form of {names}: the patterns cannot be checked here.")


def _about(path: list[str]) -> str:
    """Return what a pattern is about: an argument by its name, or the part of the schema that it stands in."""
    if path[0] == "properties":
        return f"“{path[1]}”"
    return "the names of arguments" if path[0] == "patternProperties" else f"“{'.'.join(path[:-1])}”"


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


def recursive(graph: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the nodes on cycles, and those between one cycle and another."""
    core = set(graph)
    while True:
        targets = {target for node in core for target in graph[node]}
        left = {node for node in core & targets if not core.isdisjoint(graph[node])}
        if left == core:
            return core
        core = left


MOST_CHECKS = 20_000
_OBJECTS = {"additionalProperties", "patternProperties", "unevaluatedProperties"}
_UNEVALUATED = {"unevaluatedProperties", "unevaluatedItems"}
# To know what was evaluated, everything about the same value is checked again, and what that refers to once more.
_AGAIN = 3
_ELSEWHERE = ("$dynamicRef", "$recursiveRef")


class Unbounded(ValueError):
    """The schema refers to something that isn't there, or would take too long to check; the message says where."""


class _Edge(NamedTuple):
    """An edge to the schema at `to`.

    `way`: None if it is about the same value, else which of its members or elements.
    """

    to: str
    way: str | None
    times: int = 1


_Graph = dict[str, list[_Edge]]


def check(schema: Mapping[str, Any]) -> None:
    """Raise Unbounded unless every reference leads to a schema inside and the work stays in proportion to the value.

    The schema must be valid, and no deeper than can be walked.
    """
    graph = _graph(schema)
    _inner_first({place: [edge for edge in edges if edge.way is None] for place, edges in graph.items()})
    core = recursive({place: [edge.to for edge in edges] for place, edges in graph.items()})
    once = {
        place: [edge for edge in edges if edge.way is None or not {place, edge.to} <= core]
        for place, edges in graph.items()
    }
    order = _inner_first(once)
    _check_work(once, order)
    _check_recursion(graph, core, order)


def _graph(schema: Mapping[str, Any]) -> _Graph:
    parts = {part.where: part for part in subschemas(schema)}
    return {where: list(_edges(part, parts)) for where, part in parts.items()}


def _edges(part: Subschema, parts: Mapping[str, Subschema]) -> Iterator[_Edge]:
    times = _AGAIN if _UNEVALUATED & part.schema.keys() else 1
    for child in children(part):
        if child.role == "same":
            yield _Edge(child.where, None, times)
        elif child.role == "below":
            yield _Edge(child.where, _way(child))
    if target := _target(part, parts):
        yield _Edge(target.where, None, times)


def _way(child: Subschema) -> str:
    """`.name` is about one member, `.*` about any; `[2` about one element, `[*` about any; `#*` about the names."""
    match child.keyword:
        case "properties":
            return f".{child.key}"
        case "prefixItems":
            return f"[{child.key}"
        case "propertyNames":
            return "#*"
        case keyword:
            return ".*" if keyword in _OBJECTS else "[*"


def _target(part: Subschema, parts: Mapping[str, Subschema]) -> Subschema | None:
    for keyword in _ELSEWHERE:
        if keyword in part.schema:
            raise Unbounded(f"{part.where or 'the schema'} uses {keyword}, which is not supported; expected $ref")
    if part.where and "$id" in part.schema:
        raise Unbounded(f"{part.where} has an $id of its own, which is not supported inside a schema")
    reference = part.schema.get("$ref")
    if reference is None:
        return None
    place = fragment(reference) if isinstance(reference, str) else None
    if place is None or place not in parts:
        raise Unbounded(
            f"{part.where or 'the schema'} refers to {str(reference)[:100]!r}; expected a schema within, as #/…"
        )
    return parts[place]


def _inner_first(graph: Mapping[str, list[_Edge]]) -> list[str]:
    try:
        return [
            *TopologicalSorter({place: [edge.to for edge in edges] for place, edges in graph.items()}).static_order()
        ]
    except CycleError as error:
        place = min(error.args[1], key=len)
        raise Unbounded(f"{place or 'the schema'} refers to itself without going deeper into the value") from error


def _check_work(once: _Graph, order: Iterable[str]) -> None:
    """Check the work for a value and what is in it: each reference counts again, recursion not at all."""
    work: dict[str, int] = {}
    for place in order:
        work[place] = min(MOST_CHECKS + 1, 1 + sum(edge.times * work[edge.to] for edge in once[place]))
    if work[""] > MOST_CHECKS:
        raise Unbounded(f"one value would be checked more than {MOST_CHECKS:,} times, by references to references")


def _check_recursion(graph: _Graph, core: set[str], order: Iterable[str]) -> None:
    """Check a recursion: at most one schema of it may be about the same member or element."""
    ways: dict[str, Counter[str]] = {}
    for place in order:
        found: Counter[str] = Counter()
        for edge in graph[place]:
            if {place, edge.to} <= core:
                found.update({edge.way: 1} if edge.way else {way: edge.times * n for way, n in ways[edge.to].items()})
        ways[place] = Counter({way: min(2, times) for way, times in found.items()})
        if any(_overlap(found, family) > 1 for family in ".[#"):
            raise Unbounded(f"{place or 'the schema'} recurses in a way that checks one value again at every level")


def _overlap(ways: Mapping[str, int], family: str) -> int:
    everywhere = ways.get(f"{family}*", 0)
    return everywhere + max((times for way, times in ways.items() if way[0] == family and way[1:] != "*"), default=0)


LONGEST_NAME = 128
LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 20_000
MOST_SCHEMA_BYTES = 64 * 1024
MOST_HINT_BYTES = 4 * 1024
MOST_LEVELS = 32
# Of schemas, what their checks said, by their hash: checking takes far longer than all else that is done with a tool,
# and a server that has thousands of tools may list them again with nothing changed but a description.
_said: dict[tuple[str, "tuple[Check, ...]"], str] = {}


@dataclass(frozen=True)
class Problem:
    """The reason why a tool cannot be offered. `where` is a member of the definition: `name`, `inputSchema`, …"""

    where: str
    sentence: str


def problems(tool: Offered) -> tuple[Problem, ...]:
    """Return the problems of a tool, none if it can be offered, in bounded time."""
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
    """Yield the first problem only: each check may rely on those before it."""
    if sentence := _sentence(value, most, checks):
        yield Problem(where, sentence)


def _sentence(value: Mapping[str, Any], most: int, checks: tuple[Check, ...]) -> str:
    levels = _levels(value)
    if levels > MOST_LEVELS:
        return translatable(f"It is nested more than {MOST_LEVELS} levels deep.")
    try:
        text = canonical.dumps(value)
    except canonical.NotJson as error:
        return f"It is {str(error)[:200]}."
    if len(text) > most:
        return translatable(f"It is {len(text):,} bytes long; expected at most {most:,}.")
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
    """Return how deep it is nested; beyond the limit it is not looked at further."""
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
        return translatable(f"It is not valid JSON Schema (draft 2020-12): {error}.")
    return None


def _bounded(schema: Mapping[str, Any]) -> str | None:
    try:
        check(schema)
    except Unbounded as error:
        return translatable(f"It cannot be checked: {error}.")
    return None
