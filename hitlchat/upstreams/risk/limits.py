"""Limits that a tool must fit to be offered at all; its schemas refer only to themselves, and never without bound."""

import copy
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from hitlchat.base import canonical, expressions
from hitlchat.base.schemas import Subschema, children, fragment, keys, step, subschemas
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import see
from hitlchat.gate.schema import BadSchema, check_schema
from hitlchat.upstreams.risk.fingerprint import Offered

LONGEST_NAME = 128
LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 20_000
MOST_SCHEMA_BYTES = 64 * 1024
MOST_LEVELS = 32
MOST_CHECKS = 20_000
# Of patterns that only the server checks, in a sentence.
MOST_NAMED = 5
# Of schemas, by their hash: checking takes far longer than all else that is done with a tool, and a server that has
# thousands of tools may list them again with nothing changed but a description.
MOST_REMEMBERED = 20_000
_left: dict[str, tuple[str, ...]] = {}
_sentences: dict[tuple[str, str], str] = {}

_CLASS = r"(?:\.|\[[A-Za-z0-9_ .-]{1,40}\])"
# Letters, or after a leading ^ letters and one repetition: nothing to go back to.
_PLAIN = re.compile(rf"\^?[A-Za-z0-9_-]{{0,100}}\$?|\.[*+]?|\^[A-Za-z0-9_-]{{0,100}}{_CLASS}[*+]\$?")
# To know what was evaluated, everything about the same value is checked again, and what that refers to once more.
_UNEVALUATED, _AGAIN = {"unevaluatedProperties", "unevaluatedItems"}, 3


@dataclass(frozen=True)
class Problem:
    """The reason why a tool cannot be offered. `where` is a member of the definition: `name`, `inputSchema`, …"""

    where: str
    sentence: str


class Unbounded(ValueError):
    """The schema refers to something that isn't there, or would take too long to check; the message says where."""


class _Edge(NamedTuple):
    """An edge to the schema at `to`. `way`: None for the same value, else which of its members or elements."""

    to: str
    way: str | None
    times: int = 1


_Graph = dict[str, list[_Edge]]


def problems(tool: Offered) -> tuple[Problem, ...]:
    """Return the problems of a tool, none if it can be offered, in bounded time."""
    name, found = tool.name, []
    if not name.strip():
        found.append(Problem("name", "It has no name."))
    elif len(name) > LONGEST_NAME:
        found.append(Problem("name", f"The name has {len(name):,} characters; expected at most {LONGEST_NAME}."))
    elif any(piece.hidden for piece in see(name).pieces) or set(name) & set("\n\t"):
        found.append(Problem("name", "The name has invisible characters."))
    for where, text, most in (
        ("title", tool.title or "", LONGEST_TITLE),
        ("description", tool.description or "", LONGEST_DESCRIPTION),
    ):
        if len(text) > most:
            found.append(Problem(where, f"The {where} has {len(text):,} characters; expected at most {most:,}."))
    for where, value, most_bytes in (
        ("annotations", tool.annotations, 4 * 1024),
        ("inputSchema", tool.input_schema, MOST_SCHEMA_BYTES),
        ("outputSchema", tool.output_schema, MOST_SCHEMA_BYTES),
    ):
        if value is not None and (sentence := _first_problem(where, value, most_bytes)):
            found.append(Problem(where, sentence))
    return tuple(found)


def linear(pattern: str) -> bool:
    """Return whether the linear engine takes it as its server does, and without much work."""
    return not expressions.is_ambiguous(pattern) and expressions.compiled(pattern) is not None


def left_to_the_server(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the places (JSON pointers) of patterns that take more than linear time; remembered. Raises: NotJson"""
    key = canonical.sha256(schema)
    if (places := _left.get(key)) is None:
        if len(_left) >= MOST_REMEMBERED:
            _left.clear()
        places = _left[key] = tuple(_places(schema))
    return places


def unchecked(schema: Mapping[str, Any]) -> str:
    """Return a sentence about the patterns that are left to the server; empty if there are none. canonical.NotJson."""
    subjects: dict[str, None] = {}
    for path in map(keys, left_to_the_server(schema)):
        if path[0] == "properties":
            subjects[f"“{path[1]}”"] = None
        else:
            of_names = path[0] == "patternProperties"
            subjects["the names of arguments" if of_names else f"“{'.'.join(path[:-1])}”"] = None
    if not subjects:
        return ""
    more = [f"{len(subjects) - MOST_NAMED} more"] if len(subjects) > MOST_NAMED else []
    names = ", ".join([*list(subjects)[:MOST_NAMED], *more])
    return translatable(f"Only its server checks the form of {names}: the patterns cannot be checked here.")


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


def check(schema: Mapping[str, Any]) -> None:
    """Raise Unbounded unless every reference of a valid schema leads inside, and the work fits the value."""
    parts = {part.where: part for part in subschemas(schema)}
    graph = {where: list(_edges(part, parts)) for where, part in parts.items()}
    _inner_first({place: [edge for edge in edges if edge.way is None] for place, edges in graph.items()})
    core = _recursive(graph)
    once = {
        place: [edge for edge in edges if edge.way is None or not {place, edge.to} <= core]
        for place, edges in graph.items()
    }
    order = _inner_first(once)
    # The work for a value and what is in it: each reference counts again, recursion not at all.
    work: dict[str, int] = {}
    for place in order:
        work[place] = min(MOST_CHECKS + 1, 1 + sum(edge.times * work[edge.to] for edge in once[place]))
    if work[""] > MOST_CHECKS:
        raise Unbounded(f"one value would be checked more than {MOST_CHECKS:,} times through nested references")
    _check_recursion(graph, core, order)


def _places(schema: Mapping[str, Any]) -> Iterator[str]:
    costly = {where for where, _ in expressions.costly_patterns(schema)}
    for part in subschemas(schema):
        pattern = part.schema.get("pattern")
        if isinstance(pattern, str) and (part.where in costly or not linear(pattern)):
            yield step(part.where, "pattern")
        for key in _costly_keys(part.schema):
            yield step(step(part.where, "patternProperties"), key)


def _costly_keys(schema: Mapping[str, Any]) -> list[str]:
    named = schema.get("patternProperties")
    return [key for key in named if not _PLAIN.fullmatch(key)] if isinstance(named, dict) else []


def _recursive(graph: _Graph) -> set[str]:
    """Return the nodes on cycles, and those between one cycle and another."""
    core = set(graph)
    while True:
        targets = {edge.to for node in core for edge in graph[node]}
        left = {node for node in core & targets if any(edge.to in core for edge in graph[node])}
        if left == core:
            return core
        core = left


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
            objects = {"additionalProperties", "patternProperties", "unevaluatedProperties"}
            return ".*" if keyword in objects else "[*"


def _target(part: Subschema, parts: Mapping[str, Subschema]) -> Subschema | None:
    for keyword in ("$dynamicRef", "$recursiveRef"):
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


def _check_recursion(graph: _Graph, core: set[str], order: Iterable[str]) -> None:
    """Check a recursion: at most one schema of it may be about the same member or element."""
    ways: dict[str, Counter[str]] = {}
    for place in order:
        found: Counter[str] = Counter()
        for edge in graph[place]:
            if {place, edge.to} <= core:
                found.update({edge.way: 1} if edge.way else {way: edge.times * n for way, n in ways[edge.to].items()})
        ways[place] = Counter({way: min(2, times) for way, times in found.items()})
        for family in ".[#":
            one = max((times for way, times in found.items() if way[0] == family and way[1:] != "*"), default=0)
            if found[f"{family}*"] + one > 1:
                raise Unbounded(f"{place or 'the schema'} recurses in a way that checks one value again at every level")


def _first_problem(where: str, value: Mapping[str, Any], most: int) -> str:
    """Return a sentence about the first problem only, empty if there is none: each check may rely on those before."""
    # Not by recursion, and not beyond the limit.
    level: list[Any] = [value]
    for _ in range(MOST_LEVELS):
        inner = (each.values() if isinstance(each, Mapping) else each for each in level)
        level = [child for some in inner for child in some if isinstance(child, Mapping | list)]
    if level:
        return translatable(f"It is nested more than {MOST_LEVELS} levels deep.")
    try:
        text = canonical.dumps(value)
    except canonical.NotJson as error:
        return f"It is {str(error)[:200]}."
    if len(text) > most:
        return translatable(f"It is {len(text):,} bytes long; expected at most {most:,}.")
    if where == "annotations":
        return ""
    key = where, hashlib.sha256(text.encode()).hexdigest()
    if (sentence := _sentences.get(key)) is None:
        if len(_sentences) >= MOST_REMEMBERED:
            _sentences.clear()
        sentence = _sentences[key] = _schema_problem(where, value)
    return sentence


def _schema_problem(where: str, schema: Mapping[str, Any]) -> str:
    if where == "inputSchema" and schema.get("type") != "object":
        return 'The schema is not for an object: expected "type": "object".'
    try:
        check_schema(dict(schema))
        check(schema)
    except BadSchema as error:
        return translatable(f"It is not valid JSON Schema (draft 2020-12): {error}.")
    except Unbounded as error:
        return translatable(f"It cannot be checked: {error}.")
    return ""
