"""Do these arguments fit the tool's schema? Answered before anyone is asked."""

import copy
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from hitlchat.gate import canonical

MOST_PROBLEMS = 10
LONGEST_PROBLEM = 300


class BadArguments(ValueError):
    """The arguments don't fit; the message names each field and what was expected."""


class BadSchema(ValueError):
    """The schema itself is not valid JSON Schema."""


def parse_arguments(text: str) -> dict[str, Any]:
    """The JSON object a model wrote. Empty text means no arguments, as several model servers send it.

    BadArguments: malformed JSON, not an object, or over the size limit.
    """
    if len(text) > canonical.MAX_ARGUMENT_BYTES:
        raise BadArguments(f"The arguments are {len(text):,} characters long; at most 262,144 are accepted.")
    try:
        value = canonical.loads(text or "{}")
    except canonical.NotJson as error:
        raise BadArguments(f"The arguments are not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise BadArguments(f"The arguments must be a JSON object, not {type(value).__name__}.")
    return value


def check_schema(schema: dict[str, Any]) -> None:
    """BadSchema if `schema` is no JSON Schema (draft 2020-12)."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BadSchema(_cut(error.message)) from error


def validate(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    """BadArguments unless `arguments` fit `schema`; at most ten problems are spelled out, the rest counted."""
    try:
        size = len(canonical.dumps(arguments))
    except canonical.NotJson as error:
        raise BadArguments(f"The arguments are not valid JSON: {_cut(str(error))}.") from error
    if size > canonical.MAX_ARGUMENT_BYTES:
        raise BadArguments(f"The arguments are {size:,} bytes long; at most 262,144 are accepted.")
    try:
        problems = [_sentence(error) for error in _validator(canonical.dumps(schema)).iter_errors(arguments)]
    except RecursionError as error:
        raise BadArguments("The arguments are nested too deeply.") from error
    except Unresolvable as error:
        raise BadArguments("The tool's schema refers to something outside of it, so nothing fits it.") from error
    if problems:
        more = len(problems) - MOST_PROBLEMS
        raise BadArguments(" ".join(problems[:MOST_PROBLEMS]) + (f" And {more} more problems." if more > 0 else ""))


def with_defaults(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything that will run: `arguments` in the schema's order, with its top-level defaults for what is missing."""
    properties: dict[str, Any] = schema.get("properties", {})
    filled = {
        name: arguments[name] if name in arguments else copy.deepcopy(part["default"])
        for name, part in properties.items()
        if name in arguments or (isinstance(part, dict) and "default" in part)
    }
    return filled | arguments


@lru_cache(maxsize=512)
def _validator(schema_text: str) -> Draft202012Validator:
    # An empty registry: by default a `$ref` to another host is fetched from there.
    nowhere: Registry[Any] = Registry()
    return Draft202012Validator(
        canonical.loads(schema_text), format_checker=Draft202012Validator.FORMAT_CHECKER, registry=nowhere
    )


def _sentence(error: ValidationError) -> str:
    path = ".".join(str(part) for part in error.absolute_path)
    return f"{_cut(path)}: {_cut(error.message)}." if path else f"{_cut(error.message)}."


def _cut(text: str) -> str:
    if len(text) <= LONGEST_PROBLEM:
        return text
    return f"{text[:LONGEST_PROBLEM]}… ({len(text) - LONGEST_PROBLEM:,} more characters)"
