"""Schemas that refer: only to themselves, and never so that checking a value could take longer than it should.

Recursion is fine where each step goes one level down in the value and comes back once: then the work grows with the
value. It is refused where a step stays on the same value, which never ends, and where one value is checked several
times at each level, which doubles the work with every level.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from hitlchat.upstreams.judge import pointer
from hitlchat.upstreams.judge.components import components
from hitlchat.upstreams.judge.keywords import Subschema, children, subschemas

MOST_CHECKS = 20_000
_OBJECTS = {"additionalProperties", "patternProperties", "unevaluatedProperties"}
_UNEVALUATED = {"unevaluatedProperties", "unevaluatedItems"}
# To know what was evaluated, everything about the same value is checked again, and what that refers to once more.
_AGAIN = 3
_ELSEWHERE = ("$dynamicRef", "$recursiveRef")


class Unbounded(ValueError):
    """The schema refers to something that isn't there, or would take too long to check; the message says where."""


class _Edge(NamedTuple):
    """To the schema at `to`. `way`: None if it is about the same value, else which of its members or elements."""

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
    home = components({place: [edge.to for edge in edges] for place, edges in graph.items()})
    once = {
        place: [edge for edge in edges if edge.way is None or home[edge.to] != home[place]]
        for place, edges in graph.items()
    }
    order = _inner_first(once)
    _check_work(once, order)
    _check_recursion(graph, home, order)


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
    place = pointer.fragment(reference) if isinstance(reference, str) else None
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
    """Everything about a value and what is in it, each reference followed anew, recursion not at all."""
    work: dict[str, int] = {}
    for place in order:
        work[place] = min(MOST_CHECKS + 1, 1 + sum(edge.times * work[edge.to] for edge in once[place]))
    if work[""] > MOST_CHECKS:
        raise Unbounded(f"one value would be checked more than {MOST_CHECKS:,} times, by references to references")


def _check_recursion(graph: _Graph, home: Mapping[str, int], order: Iterable[str]) -> None:
    """Of what belongs to one recursion, at most one schema may be about the same member or element."""
    ways: dict[str, Counter[str]] = {}
    for place in order:
        found: Counter[str] = Counter()
        for edge in graph[place]:
            if home[edge.to] == home[place]:
                found.update({edge.way: 1} if edge.way else {way: edge.times * n for way, n in ways[edge.to].items()})
        ways[place] = Counter({way: min(2, times) for way, times in found.items()})
        if any(_overlap(found, family) > 1 for family in ".[#"):
            raise Unbounded(f"{place or 'the schema'} recurses in a way that checks one value again at every level")


def _overlap(ways: Mapping[str, int], family: str) -> int:
    everywhere = ways.get(f"{family}*", 0)
    return everywhere + max((times for way, times in ways.items() if way[0] == family and way[1:] != "*"), default=0)
