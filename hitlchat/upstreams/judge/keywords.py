"""Where in a JSON Schema (draft 2020-12) other schemas stand, and which value each of them is about."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hitlchat.upstreams.judge import pointer

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
        value, where = part.schema.get(keyword), pointer.step(part.where, keyword)
        if keyword in _MAPS and isinstance(value, dict):
            for key, each in value.items():
                yield _child(pointer.step(where, key), each, role, keyword, key)
        elif keyword in _LISTS and isinstance(value, list):
            for index, each in enumerate(value):
                yield _child(pointer.step(where, index), each, role, keyword, str(index))
        elif isinstance(value, dict | bool):
            yield _child(where, value, role, keyword, "")


def _child(where: str, value: object, role: Role, keyword: str, key: str) -> Subschema:
    return Subschema(where, value if isinstance(value, dict) else {}, role, keyword, key)
