"""JSON Schema as pydantic writes it, made plain: every type where it is used, and no titles made up from names."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_HERE = "#/$defs/"
_NOISE = {"title", "discriminator"}
_DATA = {"default", "enum", "const", "examples"}
_NAMED = {"properties", "patternProperties", "dependentSchemas"}
# What says nothing about values of any other type, so that types can stand side by side.
_OF_ONE_TYPE = {"type", "pattern", "minLength", "maxLength", "format", "items", "minItems", "maxItems", "uniqueItems"}
_OF_ONE_TYPE |= {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
_OF_ONE_TYPE |= {"properties", "required", "additionalProperties"}


class RefersToItself(ValueError):
    """The type contains itself."""


def plain(schema: Schema, definitions: Mapping[str, Schema], inside: tuple[str, ...] = ()) -> Schema:
    """`schema` with its references resolved. RefersToItself."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference in inside:
            raise RefersToItself("it contains itself, and a tool's arguments cannot")
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        return plain(definitions[reference.removeprefix(_HERE)] | beside, definitions, (*inside, reference))
    made = {name: _part(name, value, definitions, inside) for name, value in schema.items() if name not in _NOISE}
    return _side_by_side(made)


def _part(name: str, value: Any, definitions: Mapping[str, Schema], inside: tuple[str, ...]) -> Any:
    if name in _DATA:
        return value
    if name in _NAMED:
        return {key: plain(part, definitions, inside) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part, definitions, inside) if isinstance(part, dict) else part for part in value]
    return plain(value, definitions, inside) if isinstance(value, dict) else value


def _side_by_side(schema: Schema) -> Schema:
    """`{"type": ["string", "null"]}` for an `anyOf` of such simple types: shorter for models, clearer on the card."""
    branches = schema.get("anyOf")
    if not branches or not all(isinstance(each.get("type"), str) and each.keys() <= _OF_ONE_TYPE for each in branches):
        return schema
    types = [branch["type"] for branch in branches]
    keywords = [keyword for branch in branches for keyword in branch if keyword != "type"]
    if {"integer", "number"} <= set(types) or len(set(types)) < len(types) or len(set(keywords)) < len(keywords):
        return schema
    merged = {keyword: value for branch in branches for keyword, value in branch.items()}
    return merged | {"type": types} | {name: value for name, value in schema.items() if name != "anyOf"}
