"""Schemas: whether arguments fit a tool's, answered before anyone is asked and within bounded time.

Keywords of JSON Schema whose usual check can take very long on arguments that were made for it.

A pattern is matched in time linear in the text, and a costly one not at all; `uniqueItems` compares no two items with
each other, and of what is wrong below `anyOf` and `oneOf` only the first thing is looked for.
"""

import asyncio
import copy
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from hitlchat.base import canonical, expressions
from hitlchat.base.sentences import said_elsewhere

# What jsonschema and the keywords below say, which a page shows in its language.
SAID: Final = said_elsewhere(
    "{instance} is not of type {kind}.",
    "{instance} is a required property.",
    "{instance} is not one of {values}.",
    "{instance} was expected.",
    "{instance} is less than the minimum of {least}.",
    "{instance} is less than or equal to the minimum of {least}.",
    "{instance} is greater than the maximum of {most}.",
    "{instance} is greater than or equal to the maximum of {most}.",
    "{instance} is not a multiple of {step}.",
    "{instance} is too short.",
    "{instance} should be non-empty.",
    "{instance} is too long.",
    "{instance} is expected to be empty.",
    "{instance} does not have enough properties.",
    "{instance} has too many properties.",
    "{instance} has non-unique elements.",
    "{instance} does not match {pattern}.",
    "the pattern {pattern} is too costly to be checked, so nothing fits it.",
    "{field}: the pattern {pattern} is too costly to be checked, so nothing fits it.",
    "{instance} is not a {format}.",
    "{instance} is a dependency of {name}.",
    "{instance} is not valid under any of the given schemas.",
    "{instance} is valid under each of {schemas}.",
    "{instance} should not be valid under {schema}.",
    "{instance} does not contain items matching the given schema.",
    "Additional properties are not allowed ({names} was unexpected).",
    "Additional properties are not allowed ({names} were unexpected).",
    "{field}: Additional properties are not allowed ({names} was unexpected).",
    "{field}: Additional properties are not allowed ({names} were unexpected).",
    "{value}… ({count} more characters).",
    "{field}: Expected whole characters, and not half of one (a lone surrogate).",
    "And more problems.",
)
# So that what was expected still fits into the sentence.
LONGEST_VALUE = 150

Errors = Iterator[ValidationError]


def _matches(pattern: str, text: str) -> bool:
    if (linear := expressions.compiled(pattern)) is not None:
        return linear.isinstance_python(text)
    return re.search(pattern, text) is not None


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Errors:
    if not isinstance(instance, str):
        return
    if expressions.is_costly(pattern):
        yield ValidationError(f"the pattern {_shortened(pattern)} is too costly to be checked, so nothing fits it")
    elif not _matches(pattern, instance):
        yield ValidationError(f"{_shortened(instance)} does not match {pattern!r}")


def _unique_items(_validator: Any, wanted: bool, instance: Any, _schema: Any) -> Errors:
    if wanted and isinstance(instance, list):
        spellings = {canonical.dumps(_as_number(item)) for item in instance}
        if len(spellings) < len(instance):
            yield ValidationError(f"{_shortened(instance)} has non-unique elements")


def _as_number(value: Any) -> Any:
    """Return a number as JSON Schema sees it: 1 and 1.0 are the same."""
    if isinstance(value, dict):
        return {key: _as_number(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_number(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _any_of(validator: Any, choices: list[Any], instance: Any, _schema: Any) -> Errors:
    if not any(_fits(validator, choice, instance) for choice in choices):
        yield ValidationError(f"{_shortened(instance)} is not valid under any of the given schemas")


def _one_of(validator: Any, choices: list[Any], instance: Any, _schema: Any) -> Errors:
    fitting = [choice for choice in choices if _fits(validator, choice, instance)]
    if not fitting:
        yield ValidationError(f"{_shortened(instance)} is not valid under any of the given schemas")
    elif len(fitting) > 1:
        yield ValidationError(f"{_shortened(instance)} is valid under each of {', '.join(map(repr, fitting))}")


def _fits(validator: Any, schema: Any, instance: Any) -> bool:
    return next(iter(validator.descend(instance, schema)), None) is None


def _shortened(instance: Any) -> str:
    said = repr(instance)
    if len(said) <= LONGEST_VALUE:
        return said
    return f"{said[:LONGEST_VALUE]}… ({len(said) - LONGEST_VALUE:,} more characters)"


Validator: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"pattern": _pattern, "uniqueItems": _unique_items, "anyOf": _any_of, "oneOf": _one_of},
)


MOST_PROBLEMS = 10
LONGEST_PROBLEM = 300
# Arguments up to this many characters are checked at once; what is longer must not keep the others waiting.
SMALL = 16 * 1024


class BadArguments(ValueError):
    """The arguments don't fit; the message names each field and what was expected."""


class BadSchema(ValueError):
    """The schema itself is not valid JSON Schema."""


def parse_arguments(text: str) -> dict[str, Any]:
    """The JSON object a model wrote. Empty text means no arguments, as several model servers send it.

    BadArguments: malformed JSON, not an object, or over the size limit.
    """
    most = canonical.most_argument_bytes()
    if len(text) > most:
        raise BadArguments(f"The arguments are {len(text):,} characters long; at most {most:,} are accepted.")
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
    except RecursionError as error:
        raise BadSchema("it, or one of its patterns, is nested too deeply") from error


def check_patterns(schema: dict[str, Any]) -> None:
    """BadSchema if its patterns take too long to be compiled; it names the first of them and the limit."""
    for where, why in expressions.costly_patterns(schema):
        raise BadSchema(f"{_cut(where)}: {why}")


def validate(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    """BadArguments unless `arguments` fit `schema`; at most ten problems are looked for and spelled out."""
    try:
        size = len(canonical.dumps(arguments))
    except canonical.NotJson as error:
        raise BadArguments(f"The arguments are not valid JSON: {_cut(str(error))}.") from error
    if size > (most := canonical.most_argument_bytes()):
        raise BadArguments(f"The arguments are {size:,} bytes long; at most {most:,} are accepted.")
    if (where := next(_halves(arguments), None)) is not None:
        field = _cut(canonical.whole(".".join(where)))
        raise BadArguments(f"{field}: Expected whole characters, and not half of one (a lone surrogate).")
    try:
        errors = _validator(canonical.dumps(schema)).iter_errors(arguments)
        problems = [_sentence(error) for error in islice(errors, MOST_PROBLEMS + 1)]
    except RecursionError as error:
        raise BadArguments("The arguments are nested too deeply.") from error
    except Unresolvable as error:
        raise BadArguments("The tool's schema refers to something outside of it, so nothing fits it.") from error
    if problems:
        more = " And more problems." if len(problems) > MOST_PROBLEMS else ""
        raise BadArguments(" ".join(problems[:MOST_PROBLEMS]) + more)


def _halves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield where half of a character stands (a lone surrogate), which neither tools nor databases can take."""
    if isinstance(value, str):
        if canonical.whole(value) != value:
            yield path
    elif isinstance(value, dict):
        for name, part in value.items():
            if canonical.whole(name) != name:
                yield (*path, name)
            yield from _halves(part, (*path, name))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _halves(part, (*path, str(place)))


async def accepted(schema: dict[str, Any], given: str | dict[str, Any]) -> dict[str, Any]:
    """Return what will run: `given`, as a model wrote it or as an object, checked and with the defaults.

    BadArguments.
    """
    if canonical.is_short(given, SMALL):
        return _accepted(schema, given)
    return await asyncio.to_thread(_accepted, schema, given)


def _accepted(schema: dict[str, Any], given: str | dict[str, Any]) -> dict[str, Any]:
    arguments = parse_arguments(given) if isinstance(given, str) else given
    validate(schema, arguments)
    return with_defaults(schema, arguments)


def with_defaults(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything that will run: `arguments` in the schema's order, with its defaults for what is missing.

    Also inside objects and lists of them, where the schema says plainly which object it is.
    """
    properties: dict[str, Any] = schema.get("properties", {})
    filled = {
        name: _filled(part, arguments[name]) if name in arguments else copy.deepcopy(part["default"])
        for name, part in properties.items()
        if name in arguments or (isinstance(part, dict) and "default" in part)
    }
    return filled | {name: value for name, value in arguments.items() if name not in properties}


def _filled(part: Any, value: Any) -> Any:
    if not isinstance(part, dict):
        return value
    if isinstance(value, dict):
        objects = [
            branch for branch in part.get("anyOf", [part]) if isinstance(branch, dict) and "properties" in branch
        ]
        return with_defaults(objects[0], value) if len(objects) == 1 else value
    if isinstance(value, list) and isinstance(part.get("items"), dict):
        return [_filled(part["items"], item) for item in value]
    return value


@lru_cache(maxsize=512)
def _validator(schema_text: str) -> Draft202012Validator:
    # An empty registry: by default a `$ref` to another host is fetched from there.
    nowhere: Registry[Any] = Registry()
    return Validator(
        _without_dialects(canonical.loads(schema_text)),
        format_checker=Draft202012Validator.FORMAT_CHECKER,
        registry=nowhere,
    )


def _without_dialects(schema: Any) -> Any:
    """Return the schema without names of dialects, for which jsonschema would take its own keywords, not ours."""
    if isinstance(schema, dict):
        rest = (item for item in schema.items() if not (item[0] == "$schema" and isinstance(item[1], str)))
        return {key: _without_dialects(value) for key, value in rest}
    return [_without_dialects(item) for item in schema] if isinstance(schema, list) else schema


def _sentence(error: ValidationError) -> str:
    path = ".".join(str(part) for part in error.absolute_path)
    return f"{_cut(path)}: {_cut(error.message)}." if path else f"{_cut(error.message)}."


def _cut(text: str) -> str:
    if len(text) <= LONGEST_PROBLEM:
        return text
    return f"{text[:LONGEST_PROBLEM]}… ({len(text) - LONGEST_PROBLEM:,} more characters)"
