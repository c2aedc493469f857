"""Schemas as trees: which parts of one are schemas too, and which are data that only looks like it.

Words for people are here too: the type of a value, as its schema has it, and why a value does not fit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import unquote

from jsonschema.exceptions import SchemaError, ValidationError

from hitlchat.base import canonical
from hitlchat.base.sentences import part, said_elsewhere

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
# So that the expected value still fits into the sentence.
LONGEST_VALUE: Final = 150
# The first of several types, and each that follows.
_TYPES: Final = {
    "string": (part("a text"), part("or a text")),
    "integer": (part("a whole number"), part("or a whole number")),
    "number": (part("a number"), part("or a number")),
    "boolean": (part("true or false"), part("or true or false")),
    "array": (part("a list"), part("or a list")),
    "object": (part("an object"), part("or an object")),
    "null": (part("null"), part("or null")),
}
# Why a value does not fit a keyword, with the value and that of the keyword.
_SENTENCES: Final = dict(
    zip(
        (
            *("const", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
            *("minLength", "minItems", "maxLength", "maxItems", "items", "minProperties", "maxProperties"),
            *("uniqueItems", "pattern", "format", "contains", "minContains", "maxContains", "not", "oneOf"),
        ),
        said_elsewhere(
            "{instance} was expected.",
            "{instance} is less than the minimum of {least}.",
            "{instance} is less than or equal to the minimum of {least}.",
            "{instance} is greater than the maximum of {most}.",
            "{instance} is greater than or equal to the maximum of {most}.",
            "{instance} is not a multiple of {step}.",
            "{instance} is too short.",
            "{instance} is too short.",
            "{instance} is too long.",
            "{instance} is too long.",
            "{instance} is too long.",
            "{instance} does not have enough properties.",
            "{instance} has too many properties.",
            "{instance} has non-unique elements.",
            "{instance} does not match the pattern {pattern}.",
            "{instance} is not a {format}.",
            "{instance} does not contain a required item.",
            "{instance} contains too few of the required items.",
            "{instance} contains too many of the required items.",
            "{instance} is not allowed here.",
            "{instance} matches more than one form where only one is allowed.",
        ),
        strict=True,
    )
)
_NOT_EMPTY, _EMPTY = said_elsewhere("{instance} should be non-empty.", "{instance} is expected to be empty.")
# Texts that are no JSON: as they stand in the schema.
_AS_THEY_ARE: Final = {"pattern", "format"}
SAID: Final = said_elsewhere(
    "{instance} is not {json_types}.",
    "{instance} is not one of {values}.",
    "{field}: it is required.",
    "{field}: it is required when {name} is given.",
    "{instance} was unexpected.",
    "{instance} were unexpected.",
    "{instance} matches none of the allowed forms.",
)


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


def type_word(part: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return the type of a value in few words, such as `integer or null`, as `part` of the schema `root` has it."""
    found = plain(part, root)
    words = _words(found.schema, root) or ["one of" if found.choices else "any"]
    return " or ".join([*words, *(["null"] if found.nullable else [])])


def kind_of(value: Any) -> str:
    match value:
        case None:
            name = "null"
        case bool():
            name = "boolean"
        case int() | float():
            name = "number"
        case str():
            name = "string"
        case list():
            name = "array"
        case _:
            name = "object"
    return _TYPES[name][0]


def types(names: str | Sequence[str]) -> str:
    """Return types of a schema in words: `a text or null`."""
    first, *others = [names] if isinstance(names, str) else names
    words = [_TYPES[first][0] if first in _TYPES else first]
    return " ".join(words + [_TYPES[each][1] if each in _TYPES else f"or {each}" for each in others])


def shown(value: Any) -> str:
    """Return a value as JSON in which every character can be seen, cut where it is long."""
    text = canonical.pretty(value)
    visible = (each if each.isprintable() else canonical.dumps(each)[1:-1] for each in text[:LONGEST_VALUE])
    return shortened(text, "".join(visible))


def listed(values: Sequence[Any]) -> str:
    """Return values as JSON, with commas between them, cut where that is long."""
    return shortened(", ".join(map(shown, values)))


def shortened(text: str, shown: str = "") -> str:
    """Return a text, cut where it is long; `shown`: its beginning as it is to be shown."""
    shown = shown or text[:LONGEST_VALUE]
    return shown if len(text) <= LONGEST_VALUE else f"{shown}… ({len(text) - LONGEST_VALUE:,} more characters)"


def unexpected(names: Sequence[Any]) -> str:
    return f"{listed(names)} {'was' if len(names) == 1 else 'were'} unexpected"


def problem(error: ValidationError | SchemaError) -> str:
    """Return why a value does not fit, in a sentence without its full stop, and without the place of the value."""
    value: Any = error.validator_value
    instance: Any = error.instance
    # The error of a schema which takes nothing has no keyword.
    keyword = str(error.validator or "not")
    match keyword:
        case "type":
            return f"{shown(instance)} is not {types(value)}"
        case "enum":
            return f"{shown(instance)} is not one of {listed(value)}"
        case "anyOf" | "oneOf" if keyword == "anyOf" or not error.message:
            return f"{shown(instance)} matches none of the allowed forms"
        case "unevaluatedProperties" | "unevaluatedItems":
            # The names, as the library has them in its message.
            return unexpected([each for each in instance if repr(each) in error.message])
    template = _SENTENCES.get(keyword)
    if template is None:
        return error.message
    if keyword in ("minLength", "minItems", "minProperties") and value == 1:
        template = _NOT_EMPTY
    elif keyword in ("maxLength", "maxItems", "maxProperties") and value == 0:
        template = _EMPTY
    expected = shortened(str(value)) if keyword in _AS_THEY_ARE else shown(value)
    names = dict.fromkeys(("least", "most", "step", "pattern", "format"), expected)
    return template.format(instance=expected if keyword == "const" else shown(instance), **names).removesuffix(".")


def _child(where: str, value: object, role: Role, keyword: str, key: str) -> Subschema:
    return Subschema(where, value if isinstance(value, dict) else {}, role, keyword, key)


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


def _words(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[str]:
    word = schema.get("format") or schema.get("type")
    if word:
        return [str(each) for each in word] if isinstance(word, list) else [str(word)]
    branches = schema.get("anyOf", schema.get("oneOf"))
    typed = [plain(each, root).schema for each in branches or () if isinstance(each, Mapping)]
    words = [str(each["type"]) for each in typed if isinstance(each.get("type"), str)]
    return [*dict.fromkeys(words)] if branches and len(words) == len(branches) else []
