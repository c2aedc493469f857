"""Keywords of JSON Schema whose usual check can take very long on arguments that were made for it.

A pattern is matched in time linear in the text, and a costly one not at all; `uniqueItems` compares no two items with
each other, and of what is wrong below `anyOf` and `oneOf` only the first thing is looked for.
"""

import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from hitlchat.gate import canonical, expressions

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
        yield ValidationError(f"the pattern {_cut(pattern)} is too costly to be checked, so nothing fits it")
    elif not _matches(pattern, instance):
        yield ValidationError(f"{_cut(instance)} does not match {pattern!r}")


def _unique_items(_validator: Any, wanted: bool, instance: Any, _schema: Any) -> Errors:
    if wanted and isinstance(instance, list):
        spellings = {canonical.dumps(_as_number(item)) for item in instance}
        if len(spellings) < len(instance):
            yield ValidationError(f"{_cut(instance)} has non-unique elements")


def _as_number(value: Any) -> Any:
    """To JSON Schema, 1 and 1.0 are the same number."""
    if isinstance(value, dict):
        return {key: _as_number(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_number(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _any_of(validator: Any, choices: list[Any], instance: Any, _schema: Any) -> Errors:
    if not any(_fits(validator, choice, instance) for choice in choices):
        yield ValidationError(f"{_cut(instance)} is not valid under any of the given schemas")


def _one_of(validator: Any, choices: list[Any], instance: Any, _schema: Any) -> Errors:
    fitting = [choice for choice in choices if _fits(validator, choice, instance)]
    if not fitting:
        yield ValidationError(f"{_cut(instance)} is not valid under any of the given schemas")
    elif len(fitting) > 1:
        yield ValidationError(f"{_cut(instance)} is valid under each of {', '.join(map(repr, fitting))}")


def _fits(validator: Any, schema: Any, instance: Any) -> bool:
    return next(iter(validator.descend(instance, schema)), None) is None


def _cut(instance: Any) -> str:
    said = repr(instance)
    if len(said) <= LONGEST_VALUE:
        return said
    return f"{said[:LONGEST_VALUE]}… ({len(said) - LONGEST_VALUE:,} more characters)"


Validator: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"pattern": _pattern, "uniqueItems": _unique_items, "anyOf": _any_of, "oneOf": _one_of},
)
