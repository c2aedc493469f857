"""Coercion of a call's arguments, which are JSON, to the values that `run` expects, by the formats of texts."""

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn

from jsonschema import Draft202012Validator

Schema = dict[str, Any]

DECIMAL_PATTERN = r"^-?[0-9]{1,28}(\.[0-9]{1,28})?$"


Arguments = dict[str, Any]


def coerce(schema: Schema, arguments: Arguments) -> Arguments:
    """Turn `arguments`, which fit `schema`, into Python values; ValueError names one that is not what its format says.

    Text becomes a date, a datetime or a Decimal where the schema says so, and `3.0` becomes `3` for a whole number.
    """
    properties = schema.get("properties", {})
    rest = schema.get("additionalProperties")
    others = rest if isinstance(rest, dict) else {}
    values = {}
    for name, value in arguments.items():
        try:
            values[name] = _coerced(properties.get(name, others), value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return values


def problem(schema: Schema, value: Any) -> str:
    """Return why `value` is not what `schema` describes, formats included; empty if it is."""
    errors = [error.message for error in Draft202012Validator(schema).iter_errors(value)]
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
        return _from_text(schema.get("format", ""), value)
    if isinstance(value, float) and schema.get("type") == "integer":
        return int(value)
    if isinstance(value, list) and "items" in schema:
        return [_coerced(schema["items"], item) for item in value]
    return coerce(schema, value) if isinstance(value, dict) else value


def _from_text(form: str, text: str) -> Any:
    try:
        if form == "date" and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return date.fromisoformat(text)
        if form == "date-time" and re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", text):
            return datetime.fromisoformat(text)
        if form == "decimal" and re.fullmatch(DECIMAL_PATTERN, text):
            return Decimal(text)
    except ValueError:
        pass
    examples = {
        "date": "a date like 2026-01-31",
        "date-time": "a date and time like 2026-01-31T10:00:00Z",
        "decimal": "a decimal number like 143.00",
    }
    if form in examples:
        _refuse(text, examples[form])
    return text


def _refuse(value: Any, expected: str) -> NoReturn:
    raise ValueError(f"{value!r} is not {expected}")
