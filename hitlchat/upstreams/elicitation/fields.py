"""The fields of a question: read from the schema that a server sends, and checked in what a person answers."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from hitlchat.base import expressions
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid
from hitlchat.upstreams.risk.limits import linear

Kind = Literal["text", "integer", "number", "boolean", "one", "many"]
Value = str | int | float | bool | list[str]

LONGEST_TEXT = 10_000
# JavaScript's, which is what most servers can hold.
LARGEST_INTEGER = 2**53 - 1
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]+(?:\.[^@\s.]+)+")


class BadValue(ValueError):
    """The value does not fit; what was expected, in a sentence."""


@dataclass(frozen=True)
class Option:
    value: str
    title: str


@dataclass(frozen=True)
class Field:
    """`least` and `most` bound the length of a text, the size of a number, or how many are chosen."""

    name: str
    kind: Kind
    title: str
    description: str = ""
    required: bool = False
    format: str = ""
    pattern: str = ""
    least: float | None = None
    most: float | None = None
    options: tuple[Option, ...] = ()
    default: Value | None = None

    def check(self, value: Any) -> Value:
        """The value, if it fits. BadValue."""
        match self.kind:
            case "text":
                return self._text(value)
            case "boolean":
                if not isinstance(value, bool):
                    raise BadValue("Choose yes or no.")
                return value
            case "one":
                return self._chosen(value)
            case "many":
                return self._chosen_many(value)
            case "integer" | "number":
                return self._number(value)

    def read(self, typed: Sequence[str]) -> Value | None:
        """Return what a form sent for it; None if that is nothing. BadValue."""
        if self.kind == "many":
            chosen = [text for text in typed if text]
            return self.check(chosen) if chosen or self.required else None
        text = typed[-1].replace("\r\n", "\n") if typed else ""
        if self.kind != "text":
            text = text.strip()
        if not text:
            return None
        return self.check(self._converted(text))

    def _converted(self, text: str) -> Any:
        if self.kind == "boolean":
            return {"yes": True, "no": False}.get(text)
        if self.kind not in {"integer", "number"}:
            return text
        try:
            return int(text) if re.fullmatch(r"[+-]?\d{1,400}", text) else float(text)
        except ValueError:
            raise BadValue(self._expected_number()) from None

    def _text(self, value: Any) -> str:
        if not isinstance(value, str):
            raise BadValue("Write a text.")
        if storable(value) != value:
            raise BadValue("It contains a character that cannot be kept, such as U+0000.")
        least, most = self.least or 0, min(self.most if self.most is not None else LONGEST_TEXT, LONGEST_TEXT)
        if len(value) < least:
            raise BadValue(f"Write at least {least:,.0f} characters.")
        if len(value) > most:
            raise BadValue(f"Write at most {most:,.0f} characters, not {len(value):,}.")
        if said := _FORMATS.get(self.format, _any)(value):
            raise BadValue(said)
        if self.pattern and not _matches(self.pattern, value):
            raise BadValue("It does not have the form that the server asks for.")
        return value

    def _number(self, value: Any) -> int | float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadValue(self._expected_number())
        number = self._whole(value) if isinstance(value, float) else value
        if isinstance(number, int) and abs(number) > LARGEST_INTEGER:
            raise BadValue(f"Give a number between -{LARGEST_INTEGER} and {LARGEST_INTEGER}.")
        if self.least is not None and number < self.least:
            raise BadValue(f"Give a number of at least {self.least:g}.")
        if self.most is not None and number > self.most:
            raise BadValue(f"Give a number of at most {self.most:g}.")
        return number

    def _whole(self, value: float) -> int | float:
        """An integer if that is asked for: 2.0 is one."""
        if not math.isfinite(value) or (self.kind == "integer" and not value.is_integer()):
            raise BadValue(self._expected_number())
        return int(value) if self.kind == "integer" else value

    def _expected_number(self) -> str:
        return "Give a whole number." if self.kind == "integer" else "Give a number."

    def _chosen(self, value: Any) -> str:
        if not isinstance(value, str) or value not in {option.value for option in self.options}:
            raise BadValue("Choose one of them.")
        return value

    def _chosen_many(self, values: Any) -> list[str]:
        if not isinstance(values, list):
            raise BadValue("Choose among them.")
        chosen = [self._chosen(value) for value in values]
        if len(set(chosen)) != len(chosen):
            raise BadValue("Choose each of them once.")
        if self.least is not None and len(chosen) < self.least:
            raise BadValue(f"Choose at least {self.least:g}.")
        if self.most is not None and len(chosen) > self.most:
            raise BadValue(f"Choose at most {self.most:g}.")
        return chosen


def _any(_text: str) -> str:
    return ""


def _email(text: str) -> str:
    return "" if len(text) <= 254 and _EMAIL.fullmatch(text) else "Write an e-mail address, such as ann@shop.example."


def _uri(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    fits = parts.scheme and (parts.netloc or parts.path) and not re.search(r"\s", text)
    return "" if fits else "Write a whole address, such as https://shop.example/page."


def _date(text: str) -> str:
    try:
        fits = len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        fits = False
    return "" if fits else "Write a date as year, month and day, such as 2027-01-31."


def _date_time(text: str) -> str:
    try:
        fits = datetime.fromisoformat(text).tzinfo is not None and text[10:11] in {"T", "t", " "}
    except ValueError:
        fits = False
    return "" if fits else "Write date, time and zone, such as 2027-01-31T18:00:00Z."


def _matches(pattern: str, text: str) -> bool:
    """Match in an engine that takes linear time; nothing matches a pattern that is too costly or none."""
    found = expressions.compiled(pattern)
    return found is not None and found.isinstance_python(text)


_FORMATS = {"email": _email, "uri": _uri, "date": _date, "date-time": _date_time}
FORMATS = frozenset(_FORMATS)


MOST_FIELDS = 20
MOST_OPTIONS = 200
LONGEST_NAME = 200
LONGEST_DESCRIPTION = 1000

_BOUNDS: dict[Kind, tuple[str, str]] = {
    "text": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "many": ("minItems", "maxItems"),
}
_KINDS: dict[str, Kind] = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}


class Unusable(ValueError):
    """No form can be made of it; why, in the middle of a sentence."""


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields in the order of the schema. Unusable: it is not flat, too large, or of a kind that no form has."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise Unusable("its form cannot be read")
    if len(properties) > MOST_FIELDS:
        raise Unusable(f"its form has {len(properties):,} fields, and at most {MOST_FIELDS} are shown")
    if not all(isinstance(name, str) and name in properties for name in required):
        raise Unusable("its form requires a field that it does not have")
    return tuple(_field(name, part, required=name in required) for name, part in properties.items())


def _field(name: str, part: Any, *, required: bool) -> Field:
    if not isinstance(part, dict) or not name or len(name) > LONGEST_NAME or storable(name) != name:
        raise Unusable("its form has a field that cannot be read")
    kind, options = _kind(part)
    least, most = (_bound(part, keyword) for keyword in _BOUNDS.get(kind, ("", "")))
    pattern, form = part.get("pattern"), part.get("format")
    field = Field(
        name=name,
        kind=kind,
        title=_text(part, "title", LONGEST_NAME) or name,
        description=_text(part, "description", LONGEST_DESCRIPTION),
        required=required,
        format=form if isinstance(form, str) and form in FORMATS else "",
        # What would not be checked in linear time is left to the server.
        pattern=pattern if kind == "text" and isinstance(pattern, str) and linear(pattern) else "",
        least=least,
        most=most,
        options=options,
    )
    return _with_default(field, part.get("default"))


def _with_default(field: Field, default: Any) -> Field:
    """Return the field with its default, if that fits the field."""
    if default is None:
        return field
    try:
        return Field(**{**field.__dict__, "default": field.check(default)})
    except BadValue:
        return field


def _kind(part: Mapping[str, Any]) -> tuple[Kind, tuple[Option, ...]]:
    kind = part.get("type")
    if kind == "array":
        items = part.get("items")
        options = _options(items) if isinstance(items, dict) else None
        if options is None:
            raise Unusable("its form has a list of what is not to be chosen from")
        return "many", options
    if kind == "string" and (options := _options(part)) is not None:
        return "one", options
    if not isinstance(kind, str) or kind not in _KINDS:
        raise Unusable("its form has a field of a kind that is not known here")
    return _KINDS[kind], ()


def _options(part: Mapping[str, Any]) -> tuple[Option, ...] | None:
    """Return options from `enum` (with the older `enumNames`), or from `oneOf` or `anyOf` with a title each."""
    if "enum" in part:
        values, names = part["enum"], part.get("enumNames")
        titles = names if isinstance(names, list) and isinstance(values, list) and len(names) == len(values) else values
        pairs = list(zip(values, titles, strict=True)) if isinstance(values, list) else []
    elif isinstance(each := part.get("oneOf", part.get("anyOf")), list):
        pairs = [(one.get("const"), one.get("title", one.get("const"))) for one in each if isinstance(one, dict)]
    else:
        return None
    if not 0 < len(pairs) <= MOST_OPTIONS or not all(map(_is_option, pairs)):
        raise Unusable("its form has a choice that cannot be shown")
    return tuple(Option(value, title) for value, title in pairs)


def _is_option(pair: tuple[Any, Any]) -> bool:
    return all(isinstance(text, str) and len(text) <= LONGEST_NAME and storable(text) == text for text in pair)


def _bound(part: Mapping[str, Any], keyword: str) -> float | None:
    found = part.get(keyword)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _text(part: Mapping[str, Any], keyword: str, longest: int) -> str:
    found = part.get(keyword)
    return storable(found)[:longest] if isinstance(found, str) else ""


def missing(field: Field) -> str:
    return "Fill this in." if field.kind in {"text", "integer", "number"} else "Choose one of them."


class BadAnswer(Invalid):
    """`errors`: what is wrong, by the names of fields."""

    within = "content"


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
