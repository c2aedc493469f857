"""Schemas as trees: which parts of one are schemas too, and which are data that only looks like it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import unquote


def step(where: str, key: str | int) -> str:
    """Return the place of the member or element `key` of the value at `where`, as in a JSON pointer (RFC 6901)."""
    return f"{where}/{str(key).replace('~', '~0').replace('/', '~1')}"


def dotted(where: str) -> str:
    """Return a place as a path for people: `properties.code` for `/properties/code`."""
    return ".".join(keys(where))


def keys(where: str) -> list[str]:
    """Return the keys that lead to a place."""
    return [key.replace("~1", "/").replace("~0", "~") for key in where.split("/")[1:]]


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
_NULLS: Final = ({"type": "null"}, {"const": None}, {"enum": [None]})
# Of references to references, and of schemas that stand alone in another.
MOST_HOPS: Final = 20


@dataclass(frozen=True)
class Subschema:
    """A schema inside another: its place, itself (true and false as {}), and how its parent came to it."""

    where: str
    schema: dict[str, Any]
    role: Role = "kept"
    keyword: str = ""
    key: str = ""


def subschemas(schema: Mapping[str, Any]) -> Iterator[Subschema]:
    """Yield `schema` itself and every schema in it, the outer ones first; values of `const` or `default` are none."""
    waiting = [Subschema("", dict(schema))]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed([*children(part)]))


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


@dataclass(frozen=True)
class Plain:
    """A schema of one value without its references; `nullable`: null is valid too."""

    schema: dict[str, Any]
    nullable: bool = False

    @property
    def choices(self) -> tuple[tuple[Any, str], ...]:
        """Return the allowed values, each with its title or an empty one; none if any value is allowed."""
        if isinstance(values := self.schema.get("enum"), list):
            return tuple((value, "") for value in values)
        if "const" in self.schema:
            return ((self.schema["const"], ""),)
        branches = self.schema.get("oneOf", self.schema.get("anyOf"))
        if isinstance(branches, list) and all(isinstance(each, dict) and "const" in each for each in branches):
            return tuple((each["const"], str(each.get("title", ""))) for each in branches)
        return ()


def plain(part: Mapping[str, Any], root: Mapping[str, Any]) -> Plain:
    """Return `part` of the schema `root` with its references, and lone schemas in it, resolved."""
    found, nullable = dict(part), False
    for _ in range(MOST_HOPS):
        found, null_too = _without_null(found)
        nullable = nullable or null_too
        inner = _inner(found, root)
        if inner is None:
            break
        found = inner
    return Plain(found, nullable)


def _inner(part: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema that `part` refers to or holds alone, merged with its other keywords; None if there is none."""
    if isinstance(reference := part.get("$ref"), str):
        target = _at(root, fragment(reference))
        return None if target is None else target | {key: part[key] for key in part if key != "$ref"}
    for keyword in ("allOf", "anyOf", "oneOf"):
        match part.get(keyword):
            case [dict(only)]:
                return only | {key: part[key] for key in part if key != keyword}
    return None


def _at(root: Mapping[str, Any], pointer: str | None) -> dict[str, Any] | None:
    if pointer is None:
        return None
    found: Any = root
    for key in keys(pointer):
        found = found.get(key) if isinstance(found, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else None


def _without_null(part: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the schema without null, and whether it allowed null."""
    match part:
        case {"enum": list(values)} if None in values and len(values) > 1:
            return part | {"enum": [value for value in values if value is not None]}, True
        case {"type": list(types)} if "null" in types and len(types) > 1 and not {"enum", "const"} & part.keys():
            left = [each for each in types if each != "null"]
            return part | {"type": left[0] if len(left) == 1 else left}, True
    for keyword in ("anyOf", "oneOf"):
        if isinstance(branches := part.get(keyword), list):
            left = [each for each in branches if each not in _NULLS]
            if 0 < len(left) < len(branches):
                return part | {keyword: left}, True
    return part, False
