"""An answer to a question: every value looked at, and every fault told at its field."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hitlchat.upstreams.asking.fields import BadValue, Field, Value


def missing(field: Field) -> str:
    return "Fill this in." if field.kind in {"text", "integer", "number"} else "Choose one of them."


class BadAnswer(ValueError):
    """`errors`: what is wrong, by the names of fields."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__(" ".join(f"{name}: {said}" for name, said in errors.items()))
        self.errors = dict(errors)


def checked(fields: Iterable[Field], content: Mapping[str, Any]) -> dict[str, Value]:
    """The values of an answer that fits, in the order of the fields. BadAnswer."""
    known = {field.name: field for field in fields}
    errors = {name: "There is no such field." for name in content if name not in known}
    values: dict[str, Value] = {}
    for name, field in known.items():
        try:
            if name in content:
                values[name] = field.check(content[name])
            elif field.required:
                errors[name] = missing(field)
        except BadValue as error:
            errors[name] = str(error)
    if errors:
        raise BadAnswer(errors)
    return values


def read(fields: Sequence[Field], typed: Sequence[Sequence[str]]) -> dict[str, Value]:
    """The same from the texts of a form, `typed` for each of the fields. BadAnswer."""
    errors: dict[str, str] = {}
    values: dict[str, Value] = {}
    for field, texts in zip(fields, typed, strict=True):
        try:
            value = field.read(texts)
        except BadValue as error:
            errors[field.name] = str(error)
            continue
        if value is not None:
            values[field.name] = value
        elif field.required and not (field.kind == "text" and field.least == 0):
            errors[field.name] = missing(field)
        elif field.required:
            values[field.name] = ""
    if errors:
        raise BadAnswer(errors)
    return values
