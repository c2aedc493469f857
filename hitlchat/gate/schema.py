"""Schemas: whether arguments fit a tool's, answered before anyone is asked and within bounded time.

Keywords of JSON Schema whose usual check can take very long on arguments that were made for it.

A pattern is matched in time linear in the text, and a costly one not at all; `uniqueItems` compares no two items with
each other, and of what is wrong below `anyOf` and `oneOf` only the first thing is looked for.
"""

import asyncio
import copy
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from hitlchat.base import canonical, expressions, schemas
from hitlchat.base.schemas import Subschema, dotted, shortened, shown, step, subschemas, unexpected
from hitlchat.base.sentences import said_elsewhere

SAID: Final = said_elsewhere(
    "the pattern {pattern} is too costly to check, so no value is valid.",
    "{field}: the pattern {pattern} is too costly to check, so no value is valid.",
    "{value}… ({count} more characters).",
    "{field}: expected whole characters, not half of one (a lone surrogate).",
    "And more problems.",
)

Errors = Iterator[ValidationError]
_TOO_COSTLY: Final = "too costly"

MOST_PROBLEMS = 10
LONGEST_PROBLEM = 300
# Arguments up to this many characters are checked at once; what is longer must not keep the others waiting.
SMALL = 16 * 1024
# Not of regular expressions: those of Python are another dialect.
FORMATS: Final = FormatChecker({*Draft202012Validator.FORMAT_CHECKER.checkers} - {"regex"})


class BadArguments(ValueError):
    """The arguments don't fit; the message names each field and what was expected.

    `argument`: the name of the first one that does not fit; empty where the message is about all of them.
    """

    def __init__(self, message: str, argument: str = "") -> None:
        super().__init__(message)
        self.argument = argument


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
        json_types = schemas.kind_of(value)
        raise BadArguments(f"The arguments must be a JSON object, not {json_types}.")
    return value


def check_schema(schema: dict[str, Any]) -> None:
    """BadSchema if `schema` is no JSON Schema (draft 2020-12); it names the place.

    A pattern may be in any dialect: JSON Schema's is that of ECMAScript, which nothing here reads whole.
    """
    try:
        Draft202012Validator.check_schema(schema, format_checker=FORMATS)
    except SchemaError as error:
        raise BadSchema(_sentence(error).removesuffix(".")) from error
    except RecursionError as error:
        raise BadSchema("it is nested too deeply") from error
    for part in subschemas(schema):
        for place, pattern in _patterns(part):
            if why := expressions.broken(pattern):
                raise BadSchema(f"{_cut(dotted(place))}: not a valid regular expression, since it {why}")


def check_patterns(schema: dict[str, Any]) -> None:
    """BadSchema if its patterns take too long to be compiled; it names the first of them and the limit."""
    for where, why in expressions.costly_patterns(schema):
        raise BadSchema(f"{_cut(dotted(where))}: {why}")


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
        raise BadArguments(f"{field}: expected whole characters, not half of one (a lone surrogate).", where[0])
    try:
        errors = list(islice(_validator(canonical.dumps(schema)).iter_errors(arguments), MOST_PROBLEMS + 1))
        problems = [_sentence(error) for error in errors]
    except RecursionError as error:
        raise BadArguments("The arguments are nested too deeply.") from error
    except Unresolvable as error:
        raise BadArguments(
            "The tool's schema refers to something outside itself, so no arguments are valid."
        ) from error
    if problems:
        more = " And more problems." if len(problems) > MOST_PROBLEMS else ""
        raise BadArguments(" ".join(problems[:MOST_PROBLEMS]) + more, str(next(iter(errors[0].absolute_path), "")))


async def accepted(schema: dict[str, Any], given: str | dict[str, Any]) -> dict[str, Any]:
    """Return what will run: `given`, as a model wrote it or as an object, checked and with the defaults.

    BadArguments.
    """
    if canonical.is_short(given, SMALL):
        return _accepted(schema, given)
    return await asyncio.to_thread(_accepted, schema, given)


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


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Errors:
    if not isinstance(instance, str):
        return
    if expressions.is_costly(pattern):
        too_costly = f"the pattern {shortened(pattern)} is too costly to check, so no value is valid"
        yield ValidationError(too_costly, validator=_TOO_COSTLY)
    elif expressions.matches(pattern, instance) is False:
        yield ValidationError("")


def _pattern_properties(validator: Any, named: dict[str, Any], instance: Any, _schema: Any) -> Errors:
    if not isinstance(instance, dict):
        return
    for pattern, part in named.items():
        for name in instance:
            if expressions.matches(pattern, name):
                yield from validator.descend(instance[name], part, path=name, schema_path=pattern)


def _additional_properties(validator: Any, part: Any, instance: Any, schema: Any) -> Errors:
    if not isinstance(instance, dict):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    # A name may be one of a pattern that is not checked here.
    others = [
        name
        for name in instance
        if name not in named and all(expressions.matches(pattern, name) is False for pattern in patterns)
    ]
    if part is False and others:
        yield ValidationError(unexpected(others), validator="additionalProperties: false")
    elif part is not False:
        for name in others:
            yield from validator.descend(instance[name], part, path=name)


def _required(_validator: Any, names: list[str], instance: Any, _schema: Any) -> Errors:
    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield ValidationError("it is required", validator="required: name", path=(name,))


def _dependent_required(_validator: Any, named: dict[str, list[str]], instance: Any, _schema: Any) -> Errors:
    if isinstance(instance, dict):
        for given, names in named.items():
            for name in names if given in instance else ():
                if name not in instance:
                    words = f"it is required when {shown(given)} is given"
                    yield ValidationError(words, validator="dependentRequired: name", path=(name,))


def _unique_items(_validator: Any, wanted: bool, instance: Any, _schema: Any) -> Errors:
    if wanted and isinstance(instance, list):
        spellings = {canonical.dumps(canonical.alike(item)) for item in instance}
        if len(spellings) < len(instance):
            yield ValidationError("")


def _any_of(validator: Any, choices: list[Any], instance: Any, _schema: Any) -> Errors:
    problems = []
    for choice in choices:
        if (found := _first(validator, choice, instance)) is None:
            return
        problems.append(found)
    yield _of_none(problems)


def _one_of(validator: Any, choices: list[Any], instance: Any, _schema: Any) -> Errors:
    problems = [_first(validator, choice, instance) for choice in choices]
    wrong = [found for found in problems if found is not None]
    if len(wrong) == len(problems):
        yield _of_none(wrong)
    elif len(wrong) < len(problems) - 1:
        yield ValidationError("more than one")


def _first(validator: Any, schema: Any, instance: Any) -> ValidationError | None:
    found: ValidationError | None = next(iter(validator.descend(instance, schema)), None)
    return found


def _of_none(problems: list[ValidationError]) -> ValidationError:
    """Return the problem of a value that fits none of several forms: that of the form that is meant, if one is."""
    other = [found for found in problems if found.validator == "type" and not found.path]
    meant = [found for found in problems if found not in other]
    if len(meant) == 1:
        return meant[0]
    if meant:
        return ValidationError("")
    values = [found.validator_value for found in other]
    kinds = [kind for value in values for kind in (value if isinstance(value, list) else [value])]
    return ValidationError("", validator="type", validator_value=[*dict.fromkeys(kinds)])


def _patterns(part: Subschema) -> Iterator[tuple[str, str]]:
    if isinstance(pattern := part.schema.get("pattern"), str):
        yield step(part.where, "pattern"), pattern
    for pattern in part.schema.get("patternProperties", {}):
        yield step(step(part.where, "patternProperties"), pattern), pattern


def _halves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of lone surrogates, which neither tools nor databases can take."""
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


def _accepted(schema: dict[str, Any], given: str | dict[str, Any]) -> dict[str, Any]:
    arguments = parse_arguments(given) if isinstance(given, str) else given
    validate(schema, arguments)
    return with_defaults(schema, arguments)


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
    return Validator(_prepared(canonical.loads(schema_text)), format_checker=FORMATS, registry=nowhere)


def _prepared(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema as jsonschema is to read it.

    Without names of dialects, for which it would take its own keywords, not ours; and with what takes no value spelled
    so that a problem has its place.
    """
    for part in subschemas(schema):
        inner = schema if part.where == "" else part.schema
        if isinstance(inner.get("$schema"), str):
            del inner["$schema"]
        for keyword in ("properties", "patternProperties"):
            if isinstance(named := inner.get(keyword), dict):
                named.update({name: {"not": {}} for name, each in named.items() if each is False})
    return schema


def _sentence(error: ValidationError | SchemaError) -> str:
    path, words = ".".join(str(part) for part in error.absolute_path), _cut(schemas.problem(error))
    return f"{_cut(path)}: {words}." if path else f"{words}."


def _cut(text: str) -> str:
    if len(text) <= LONGEST_PROBLEM:
        return text
    return f"{text[:LONGEST_PROBLEM]}… ({len(text) - LONGEST_PROBLEM:,} more characters)"


Validator: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "required": _required,
        "dependentRequired": _dependent_required,
        "uniqueItems": _unique_items,
        "anyOf": _any_of,
        "oneOf": _one_of,
    },
)
