"""The limits an author may put on a parameter: `Annotated[int, "how many", {"minimum": 1}]`."""

from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from tools_studio import patterns

_NUMBER = frozenset({"integer", "number"})
_TEXT = frozenset({"string"})
_LIST = frozenset({"array"})
# Which types a keyword says something about: anywhere else it would look like a check and never be one.
_APPLIES: dict[str, frozenset[str]] = {
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "multipleOf": _NUMBER,
    "minLength": _TEXT,
    "maxLength": _TEXT,
    "pattern": _TEXT,
    "minItems": _LIST,
    "maxItems": _LIST,
    "uniqueItems": _LIST,
}


def check(bounds: dict[Any, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return `bounds` if all of them mean something for the type of `schema`, or raise ValueError."""
    types = {branch.get("type") for branch in schema.get("anyOf", [schema])}
    for keyword in bounds:
        if keyword not in _APPLIES:
            raise ValueError(f"unknown bound {keyword!r}: expected one of {', '.join(_APPLIES)}")
        if types.isdisjoint(_APPLIES[keyword]):
            raise ValueError(f"the bound {keyword!r} says nothing about this type")
    if "pattern" in bounds:
        if "pattern" in schema:
            raise ValueError("this type has a pattern of its own")
        patterns.check(bounds["pattern"])
    _check_values(bounds)
    return bounds


def _check_values(bounds: dict[str, Any]) -> None:
    try:
        Draft202012Validator.check_schema(bounds)
    except SchemaError as error:
        raise ValueError(f"the bound {'.'.join(map(str, error.path))!r} does not fit: {error.message}") from error
