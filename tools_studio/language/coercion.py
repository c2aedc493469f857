"""Coercion of a call's arguments, which are JSON, to the values that `run` expects: dates, decimals and records.

Texts become values by their formats before the call; a record is made inside the sandbox, by a few lines that are put
after the author's.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn

from hitlchat.gate.schema import BadArguments, Validator

Schema = dict[str, Any]

Arguments = dict[str, Any]

DECIMAL_PATTERN = r"^-?[0-9]{1,28}(\.[0-9]{1,28})?$"
# Of each format what texts of it look like, what makes the value, and an example.
_FORMATS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "date": (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", date.fromisoformat, "a date like 2026-01-31"),
    "date-time": (
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].*",
        datetime.fromisoformat,
        "a date and time like 2026-01-31T10:00:00Z",
    ),
    "decimal": (DECIMAL_PATTERN, Decimal, "a decimal number like 143.00"),
}
_MANY = {"items": "[{0} for item in {1}]", "additionalProperties": "{{key: {0} for key, item in {1}.items()}}"}


def coerce(schema: Schema, arguments: Arguments) -> Arguments:
    """Turn `arguments`, which fit `schema`, into Python values.

    Text becomes a date, a datetime or a Decimal where the schema says so, and `3.0` becomes `3` for a whole number.
    BadArguments names one that is not what its format says.
    """
    properties = schema.get("properties", {})
    rest = schema.get("additionalProperties")
    others = rest if isinstance(rest, dict) else {}
    values = {}
    for name, value in arguments.items():
        try:
            values[name] = _coerced(properties.get(name, others), value)
        except ValueError as error:
            raise BadArguments(f"{name}: {error}", name) from error
    return values


def problem(schema: Schema, value: Any) -> str:
    """Return why `value` is not what `schema` describes, formats included; empty if it is."""
    errors = [error.message for error in Validator(schema).iter_errors(value)]
    if errors:
        return str(errors[0])
    try:
        _coerced(schema, value)
    except ValueError as error:
        return str(error)
    return ""


def _coerced(schema: Schema, value: Any) -> Any:
    if "anyOf" in schema:
        branches = [branch for branch in schema["anyOf"] if not problem(branch, value)]
        if not branches:
            _refuse(value, "any of the allowed types")
        return _coerced(branches[0], value)
    if isinstance(value, str):
        return _from_text(value, schema["format"]) if schema.get("format") in _FORMATS else value
    if isinstance(value, float) and schema.get("type") == "integer":
        return int(value)
    if isinstance(value, list) and "items" in schema:
        return [_coerced(schema["items"], item) for item in value]
    return coerce(schema, value) if isinstance(value, dict) else value


def _from_text(value: str, form: str) -> Any:
    pattern, convert, expected = _FORMATS[form]
    try:
        if re.fullmatch(pattern, value):
            return convert(value)
    except ValueError:
        pass
    return _refuse(value, expected)


def _refuse(value: Any, expected: str) -> NoReturn:
    raise ValueError(f"{value!r} is not {expected}")


def entry_of(function: str) -> str:
    """Return the name of the function to call in place of `function`, which takes records."""
    return f"_hitl_{function}"


def glue(function: str, schema: Mapping[str, Any], records: Collection[str], *, is_async: bool) -> str:
    """Lines to put after the author's code: its `entry_of`, which makes the records and then calls `function`.

    `schema` is the input schema; a part of it whose title is in `records` is one. Empty when there is none.
    """
    used = {part["title"]: part for part in _parts(schema) if part.get("title") in records}
    if not used:
        return ""
    makers = "".join(_maker(f"_hitl_make_{name}", part, f"{name}(**value)", used) for name, part in used.items())
    call = f"{'await ' * is_async}{function}(**value)"
    entry = _maker(entry_of(function), schema, call, used).replace("(value)", "(**value)", 1)
    return f"\n\n{makers}{'async ' * is_async}{entry}"


def _maker(function: str, schema: Mapping[str, Any], last: str, records: Collection[str]) -> str:
    lines = [f"def {function}(value):", "    value = dict(value)"]
    for key, part in schema.get("properties", {}).items():
        if made := _made(part, f"value[{key!r}]", records):
            lines += [f"    if {key!r} in value:", f"        value[{key!r}] = {made}"]
    return "\n".join([*lines, f"    return {last}"]) + "\n\n\n"


def _made(schema: Mapping[str, Any], value: str, records: Collection[str]) -> str:
    """An expression for `value` with its records made; empty when it holds none."""
    if schema.get("title") in records:
        return f"_hitl_make_{schema['title']}({value})"
    for key, many in _MANY.items():
        part = schema.get(key)
        if isinstance(part, dict) and (made := _made(part, "item", records)):
            return many.format(made, value)
    for branch in schema.get("anyOf", []):
        if made := _made(branch, value, records):
            return f"({made} if isinstance({value}, {'list' if 'items' in branch else 'dict'}) else {value})"
    return ""


def _parts(schema: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from _parts(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _parts(part)
