"""A function's annotations and docstring as JSON Schema, and arguments of a call as the objects that it expects."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

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
    if name in _REFERENCE:
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


_NAME_CAP = 64  # what the providers of models accept as the name of a property
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_UNSUPPORTED = (PydanticUserError, PydanticUndefinedAnnotation, RefersToItself, TypeError)


class SignatureError(ValueError):
    """The function cannot be a tool; the message names the parameter."""


@dataclass(frozen=True)
class Signature:
    """`output_schema` is None where nothing is said about the result; `caller` names the parameter that gets who
    called, if there is one.
    """

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
                problems.extend((name, said) for said in _sentences(name, error))
        if problems:
            raise BadArguments(" ".join(said for _, said in problems), problems[0][0])
        return made


def read(function: Function) -> Signature:
    """SignatureError when `function` has a parameter that no call could fill in from JSON."""
    hints = _hints(function)
    parameters = inspect.signature(function).parameters
    caller = [name for name in parameters if hints.get(name) is Caller]
    if len(caller) > 1:
        raise SignatureError(f"the parameters {caller[0]!r} and {caller[1]!r} are both a Caller; expected one at most")
    named = {name: each for name, each in parameters.items() if name not in caller}
    adapters = {name: _adapter(name, each, hints) for name, each in named.items()}
    text = docstrings.read(inspect.getdoc(function) or "", named, docstrings.DECLARED)
    return Signature(
        input_schema={
            "type": "object",
            "properties": {name: _property(each, adapters[name], text.parameters) for name, each in named.items()},
            "required": [name for name, each in named.items() if each.default is each.empty],
            "additionalProperties": False,
        },
        output_schema=_output(hints),
        description=text.description,
        adapters=adapters,
        caller=caller[0] if caller else None,
    )


def _hints(function: Function) -> dict[str, Any]:
    try:
        return get_type_hints(inspect.unwrap(function), include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise SignatureError(f"its annotations cannot be read: {error}") from error


def _adapter(name: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> TypeAdapter[Any]:
    if parameter.kind not in _NAMED:
        raise SignatureError(f"the parameter {name!r} has no name in a call: expected no *, ** or / parameters")
    if not name.isascii() or len(name) > _NAME_CAP:
        raise SignatureError(f"the parameter {name!r}: expected at most {_NAME_CAP} letters a-z, digits and _")
    if name not in hints:
        raise SignatureError(f"the parameter {name!r} has no type: expected `{name}: str` or the like")
    try:
        return TypeAdapter(hints[name])
    except _UNSUPPORTED as error:
        raise _unsupported(f"the parameter {name!r}", error) from error


def _property(parameter: inspect.Parameter, adapter: TypeAdapter[Any], described: Mapping[str, str]) -> Schema:
    name = parameter.name
    try:
        schema = _schema(adapter, output=False)
    except _UNSUPPORTED as error:
        raise _unsupported(f"the parameter {name!r}", error) from error
    if text := described.get(name):
        schema.setdefault("description", text)
    if parameter.default is not parameter.empty:
        schema["default"] = _default(name, parameter.default, adapter)
    return schema


def _default(name: str, value: Any, adapter: TypeAdapter[Any]) -> Any:
    try:
        written = adapter.dump_python(value, mode="json", warnings="error")
        adapter.validate_json(canonical.dumps(written))
    except (PydanticSerializationError, canonical.NotJson, ValidationError) as error:
        raise SignatureError(f"the default of {name!r} does not fit its type, or JSON cannot hold it") from error
    return written


def _output(hints: Mapping[str, Any]) -> Schema | None:
    if "return" not in hints:
        return None
    try:
        return _schema(TypeAdapter(hints["return"]), output=True) or None
    except _UNSUPPORTED as error:
        raise _unsupported("what it returns", error) from error


def _schema(adapter: TypeAdapter[Any], *, output: bool) -> Schema:
    found = adapter.json_schema(mode="serialization" if output else "validation")
    return plain(found, found.pop("$defs", {}))


def _unsupported(what: str, error: Exception) -> SignatureError:
    first = str(error).splitlines()[0]
    return SignatureError(f"{what} has a type that JSON cannot carry: {first}")


def _sentences(name: str, error: ValidationError) -> list[str]:
    """Return the errors without the value itself: the caller knows it, and the log need not."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"{'.'.join(map(str, (name, *each['loc'])))}: {each['msg']}." for each in found]
