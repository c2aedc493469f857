"""A function's annotations and docstring as JSON Schema, and arguments of a call as the objects that it expects."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticSerializationError

from hitlchat.base import canonical, docstrings
from hitlchat.gate.actor import Caller
from hitlchat.gate.schema import BadArguments
from hitlchat.project_tools import Function

Schema = dict[str, Any]

_HERE = "#/$defs/"
_NOISE = {"title", "discriminator"}
_DATA = {"default", "enum", "const", "examples"}
_REFERENCE = {"properties", "patternProperties", "dependentSchemas"}
# What says nothing about values of any other type, so that types can stand side by side.
_OF_ONE_TYPE = {"type", "pattern", "minLength", "maxLength", "format", "items", "minItems", "maxItems", "uniqueItems"}
_OF_ONE_TYPE |= {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
_OF_ONE_TYPE |= {"properties", "required", "additionalProperties"}
# What the providers of models accept as the name of a property.
_NAME_CAP = 64
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class RefersToItself(ValueError):
    """The type contains itself."""


_UNSUPPORTED = (PydanticUserError, PydanticUndefinedAnnotation, RefersToItself, TypeError)


class SignatureError(ValueError):
    """The function cannot be a tool; the message names the parameter."""


@dataclass(frozen=True)
class Signature:
    """`output_schema` is None without an annotation of the result; `caller` names the parameter that gets it."""

    input_schema: Schema
    output_schema: Schema | None
    description: str
    adapters: Mapping[str, TypeAdapter[Any]]
    caller: str | None

    @property
    def arguments(self) -> list[tuple[str, Schema]]:
        """Name and schema of each, as a list: a template that asks a mapping for its items finds a key of that name."""
        return list(self.input_schema["properties"].items())

    def coerce(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Dates, decimals, records and so on, from JSON values. BadArguments."""
        made: dict[str, Any] = {}
        problems: list[tuple[str, str]] = []
        for name, value in arguments.items():
            try:
                made[name] = self.adapters[name].validate_json(canonical.dumps(value))
            except ValidationError as error:
                # Without the value itself: the caller knows it, and the log need not.
                found = error.errors(include_url=False, include_context=False, include_input=False)
                problems += [(name, f"{'.'.join(map(str, (name, *each['loc'])))}: {each['msg']}.") for each in found]
        if problems:
            raise BadArguments(" ".join(sentence for _, sentence in problems), problems[0][0])
        return made


def read(function: Function) -> Signature:
    """SignatureError when `function` has a parameter that no call could fill in from JSON."""
    try:
        hints = get_type_hints(inspect.unwrap(function), include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise SignatureError(f"its annotations cannot be read: {error}") from error
    parameters = inspect.signature(function).parameters
    caller = [name for name in parameters if hints.get(name) is Caller]
    if len(caller) > 1:
        raise SignatureError(f"the parameters {caller[0]!r} and {caller[1]!r} are both a Caller; expected one at most")
    named = {name: each for name, each in parameters.items() if name not in caller}
    text = docstrings.read(inspect.getdoc(function) or "", named, docstrings.DECLARED)
    adapters, properties = {}, {}
    for name, each in named.items():
        adapters[name], properties[name] = _parameter(each, hints)
        if described := text.parameters.get(name):
            properties[name].setdefault("description", described)
        if each.default is not each.empty:
            properties[name]["default"] = _default(name, each.default, adapters[name])
    return Signature(
        input_schema={
            "type": "object",
            "properties": properties,
            "required": [name for name, each in named.items() if each.default is each.empty],
            "additionalProperties": False,
        },
        output_schema=(_typed("what it returns", hints["return"], "serialization")[1] or None)
        if "return" in hints
        else None,
        description=text.description,
        adapters=adapters,
        caller=caller[0] if caller else None,
    )


def _parameter(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> tuple[TypeAdapter[Any], Schema]:
    name = parameter.name
    if parameter.kind not in _NAMED:
        raise SignatureError(f"the parameter {name!r} cannot be passed by name: expected no *, ** or / parameters")
    if not name.isascii() or len(name) > _NAME_CAP:
        raise SignatureError(f"the parameter {name!r}: expected at most {_NAME_CAP} letters a-z, digits and _")
    if name not in hints:
        raise SignatureError(f"the parameter {name!r} has no type: expected `{name}: str` or the like")
    return _typed(f"the parameter {name!r}", hints[name], "validation")


def _typed(what: str, hint: Any, mode: Literal["validation", "serialization"]) -> tuple[TypeAdapter[Any], Schema]:
    try:
        adapter = TypeAdapter(hint)
        schema = adapter.json_schema(mode=mode)
        return adapter, _plain(schema, schema.pop("$defs", {}))
    except _UNSUPPORTED as error:
        raise SignatureError(f"{what} has a type that JSON cannot carry: {str(error).splitlines()[0]}") from error


def _default(name: str, value: Any, adapter: TypeAdapter[Any]) -> Any:
    try:
        written = adapter.dump_python(value, mode="json", warnings="error")
        adapter.validate_json(canonical.dumps(written))
    except (PydanticSerializationError, canonical.NotJson, ValidationError) as error:
        raise SignatureError(f"the default of {name!r} does not fit its type, or JSON cannot hold it") from error
    return written


def _plain(schema: Schema, definitions: Mapping[str, Schema], inside: tuple[str, ...] = ()) -> Schema:
    """`schema` with its references resolved. RefersToItself."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference in inside:
            raise RefersToItself("it contains itself, which a tool's arguments cannot")
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        return _plain(definitions[reference.removeprefix(_HERE)] | beside, definitions, (*inside, reference))
    made = {name: _part(name, value, definitions, inside) for name, value in schema.items() if name not in _NOISE}
    return _side_by_side(made)


def _part(name: str, value: Any, definitions: Mapping[str, Schema], inside: tuple[str, ...]) -> Any:
    if name in _DATA:
        return value
    if name in _REFERENCE:
        return {key: _plain(part, definitions, inside) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, definitions, inside) if isinstance(part, dict) else part for part in value]
    return _plain(value, definitions, inside) if isinstance(value, dict) else value


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
