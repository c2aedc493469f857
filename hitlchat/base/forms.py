"""The fields of a form that somebody else made up, the check of what a person answers, and what pages show of them:
text as text, each field with what is expected and what is wrong with it.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from hitlchat.base import expressions
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import part
from hitlchat.base.visible import Seen, see

Kind = Literal["text", "integer", "number", "boolean", "one", "many"]
Value = str | int | float | bool | list[str]

LONGEST_TEXT = 10_000
# JavaScript's, which is what most servers can hold.
LARGEST_INTEGER = 2**53 - 1
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]+(?:\.[^@\s.]+)+")
MOST_RADIOS = 6
LONGEST_LINE = 200
_INPUTS = {"email": "email", "uri": "url", "date": "date"}
# What is expected of a text of this format.
FORMATS: Final = {
    "email": "Write an e-mail address, such as ann@shop.example.",
    "uri": "Write a whole address, such as https://shop.example/page.",
    "date": "Write a date as year, month and day, such as 2027-01-31.",
    "date-time": "Write date, time and zone, such as 2027-01-31T18:00:00Z.",
}
_EXAMPLES = {
    "date-time": part("such as 2027-01-31T18:00:00Z"),
    "uri": part("a full address"),
    "email": part("an e-mail address"),
}


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

    @property
    def is_number(self) -> bool:
        return self.kind in {"integer", "number"}

    @property
    def is_typed(self) -> bool:
        """Return whether a person writes something there, and does not only choose."""
        return self.kind == "text" or self.is_number

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
        """Return the value that a form sent for the field; None if it sent nothing. BadValue."""
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
            raise BadValue("Contains a character that cannot be stored, such as U+0000.")
        least, most = self.least or 0, min(self.most if self.most is not None else LONGEST_TEXT, LONGEST_TEXT)
        if not value and least == 1:
            raise BadValue(missing(self))
        if len(value) < least:
            raise BadValue(f"Write at least {least:,.0f} characters.")
        if len(value) > most:
            raise BadValue(f"Write at most {most:,.0f} characters, not {len(value):,}.")
        if self.format in FORMATS and not _has_format(value, self.format):
            raise BadValue(FORMATS[self.format])
        # In an engine that takes linear time; nothing matches a pattern that is too costly or none.
        linear = expressions.compiled(self.pattern) if self.pattern else None
        if self.pattern and not (linear and linear.isinstance_python(value)):
            raise BadValue("Not in the expected format.")
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
            raise BadValue("Choose one from the list.")
        return value

    def _chosen_many(self, values: Any) -> list[str]:
        if not isinstance(values, list):
            raise BadValue("Choose from the list.")
        chosen = [self._chosen(value) for value in values]
        if len(set(chosen)) != len(chosen):
            raise BadValue("Choose each only once.")
        if self.least is not None and len(chosen) < self.least:
            raise BadValue(f"Choose at least {self.least:g}.")
        if self.most is not None and len(chosen) > self.most:
            raise BadValue(f"Choose at most {self.most:g}.")
        return chosen


def missing(field: Field) -> str:
    return "Fill this in." if field.kind in {"text", "integer", "number"} else "Choose one from the list."


class BadAnswer(Invalid):
    """`errors`: what is wrong, by the names of fields."""

    within = "content"


def checked(fields: Iterable[Field], content: Mapping[str, Any]) -> dict[str, Value]:
    """The values of an answer that fits, in the order of the fields. BadAnswer."""
    by_name = {field.name: field for field in fields}
    errors = {name: "There is no such field." for name in content if name not in by_name}
    values: dict[str, Value] = {}
    for name, field in by_name.items():
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


@dataclass(frozen=True)
class Choice:
    value: str
    title: Seen
    is_chosen: bool


@dataclass(frozen=True)
class FieldView:
    """`name` is what the form sends it as: the server's own name might be one of ours."""

    name: str
    title: Seen
    description: Seen | None
    hint: str
    widget: str
    input: str
    text: str
    choices: tuple[Choice, ...]
    required: bool
    error: str

    @property
    def described_by(self) -> tuple[str, ...]:
        """Endings of the ids of what explains it."""
        parts = {"about": self.description, "hint": self.hint, "error": self.error}
        return tuple(name for name, part in parts.items() if part)


def field_name(index: int) -> str:
    return f"f{index}"


def views(
    fields: Sequence[Field], typed: Sequence[Sequence[str]], errors: Mapping[str, str] | None = None
) -> tuple[FieldView, ...]:
    """Return the fields as a page shows them, with what stands in each and what is wrong with it, by its name."""
    return tuple(
        FieldView(
            name=field_name(index),
            title=see(field.title),
            description=see(field.description) if field.description else None,
            hint=_hint(field),
            widget=_widget(field),
            input=_INPUTS.get(field.format, "text"),
            text=given[-1] if given else "",
            choices=_choices(field, given),
            required=field.required,
            error=(errors or {}).get(field.name, ""),
        )
        for index, (field, given) in enumerate(zip(fields, typed, strict=True))
    )


def prefilled(field: Field) -> list[str]:
    """The server's own suggestion, in plain sight."""
    value: Value | None = field.default
    match value:
        case None:
            return []
        case bool():
            return ["yes" if value else "no"]
        case list():
            return value
        case _:
            return [str(value)]


def _widget(field: Field) -> str:
    match field.kind:
        case "boolean":
            return "radios"
        case "one":
            return "radios" if len(field.options) <= MOST_RADIOS else "select"
        case "many":
            return "boxes"
        case "integer" | "number":
            return "number"
        case "text":
            is_long = field.most is None or field.most > LONGEST_LINE
            return "lines" if is_long and not field.format else "line"


def _choices(field: Field, given: Sequence[str]) -> tuple[Choice, ...]:
    if field.kind == "boolean":
        pairs = [("yes", "Yes"), ("no", "No")]
    else:
        pairs = [(option.value, option.title) for option in field.options]
    chosen = set(given)
    found = [Choice(value, see(title), value in chosen) for value, title in pairs]
    if pairs and field.kind != "many" and not field.required:
        found.append(Choice("", see("No answer"), not chosen - {""}))
    return tuple(found)


def _hint(field: Field) -> str:
    match field.kind:
        case "text":
            words = [_EXAMPLES.get(field.format, ""), _range(field, " characters", LONGEST_TEXT)]
        case "integer" | "number":
            kind = part("a whole number") if field.kind == "integer" else part("a number")
            words = [kind, _range(field, "", LARGEST_INTEGER)]
        case "many":
            words = [part("any number") if field.least is None else ""]
            words.append(_range(field, " of them", len(field.options)))
        case _:
            words = []
    return ", ".join(filter(None, words))


def _range(field: Field, what: str, largest: int) -> str:
    least, most = field.least, None if field.most is None or field.most >= largest else field.most
    if what == " characters" and least == 1 and field.required:
        # That it must be filled in says as much.
        least = None
    if least and most:
        bounds = f"{least:g} to {most:g}"
    elif least is not None and (least or not what):
        bounds = f"at least {least:g}"
    else:
        bounds = "" if most is None else f"at most {most:g}"
    return f"{bounds}{what}" if bounds else ""


def _has_format(text: str, name: str) -> bool:
    try:
        match name:
            case "email":
                return len(text) <= 254 and _EMAIL.fullmatch(text) is not None
            case "uri":
                parts = urlsplit(text)
                return bool(parts.scheme and (parts.netloc or parts.path)) and not re.search(r"\s", text)
            case "date":
                return len(text) == 10 and bool(date.fromisoformat(text))
            case _:
                return datetime.fromisoformat(text).tzinfo is not None and text[10:11] in {"T", "t", " "}
    except ValueError:
        return False


# The results of `_range`.
RANGES: Final = (
    *(part("{least} to {most}"), part("at least {least}"), part("at most {most}")),
    *(part("{least} to {most} characters"), part("at least {least} characters"), part("at most {most} characters")),
    *(part("{least} to {most} of them"), part("at least {least}"), part("at most {most}")),
)
