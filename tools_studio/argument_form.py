"""A form made from a tool's schema, and the JSON arguments made from what was typed into it."""

from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hitlchat.base import canonical
from hitlchat.base.schemas import Plain, plain, type_word
from hitlchat.base.visible import see

PREFIX = "arg-"
# What an empty field means, where that can be more than one thing.
EMPTY = "empty-"
OUT, NULL, TEXT = "out", "null", "text"
_MEANINGS: Final = {OUT: _("leave it out"), NULL: _("send null"), TEXT: _("send an empty text")}
_EXPECTED: Final = {"integer": "a whole number", "number": "a number"}
_KINDS: Final = {"string": "text", "integer": "integer", "number": "number", "boolean": "choice"}
DEEPEST_SAMPLE = 3

Schema = dict[str, Any]
Arguments = dict[str, Any]
_SAMPLES = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "decimal": "12.50",
    "integer": 3,
    "number": 1.5,
    "boolean": True,
    "string": "text",
}


class BadInput(ValueError):
    """The text of a field does not fit its argument, which the message names."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.html_name = PREFIX + name


@dataclass(frozen=True)
class Field:
    """The field of one argument. `meanings`: what an empty field can mean; `empty`: the chosen one."""

    name: str
    kind: str
    word: str
    description: str
    required: bool
    value: str
    choices: tuple[tuple[str, str], ...] = ()
    sample: str = ""
    meanings: tuple[str, ...] = ()
    empty: str = ""

    @property
    def html_name(self) -> str:
        return PREFIX + self.name

    @property
    def empty_name(self) -> str:
        return EMPTY + self.name

    @property
    def options(self) -> list[tuple[str, str]]:
        """Return the choices of a list, each with its label, whose hidden characters are shown."""
        return [(choice, see(label).plain) for choice, label in self.choices]

    @property
    def can_be_left_out(self) -> bool:
        return OUT in self.meanings

    @property
    def when_empty(self) -> list[tuple[str, str | Promise]]:
        """Return what an empty field can mean, each with its label; none if there is only one meaning."""
        return (
            [(each, _MEANINGS[each]) for each in self.meanings] if self.kind != "choice" and self.meanings[1:] else []
        )

    def typed(self, typed: QueryDict) -> "Field":
        empty = str(typed.get(self.empty_name, ""))
        value = str(typed.get(self.html_name, ""))
        return replace(self, value=value, empty=empty if empty in self.meanings else self.empty)


def fields(schema: Schema, given: Arguments | None) -> list[Field]:
    """Return one field for each argument, filled from `given` or with the default."""
    required = set(schema.get("required", []))
    parts = schema.get("properties", {}).items()
    return [_field(name, part, schema, given, is_required=name in required) for name, part in parts]


def arguments(schema: Schema, typed: QueryDict, given: Arguments | None = None) -> Arguments:
    """Return the arguments as typed. `given`: what the fields were filled with, to tell what an empty one means.

    Raises: BadInput
    """
    found: Arguments = {}
    for field in fields(schema, given):
        # A browser sends each line's end as two characters.
        text = str(typed.get(field.html_name, "")).replace("\r\n", "\n")
        if text:
            try:
                found[field.name] = text if field.kind == "text" else canonical.loads(text)
            except canonical.NotJson as error:
                expected = _EXPECTED.get(field.kind, 'JSON, such as [1, 2] or {"a": 1}')
                raise BadInput(field.name, f"expected {expected}.") from error
            continue
        is_there = field.html_name in typed or field.required
        match field.typed(typed).empty if is_there else OUT:
            case "":
                raise BadInput(field.name, "it is required.")
            case meaning if meaning != OUT:
                found[field.name] = "" if meaning == TEXT else None
    return found


def _field(name: str, part: Any, schema: Schema, given: Arguments | None, *, is_required: bool) -> Field:
    says = plain(part, schema)
    kind = _kind(says)
    listed = says.choices or (((True, ""), (False, "")) if says.schema.get("type") == "boolean" else ())
    choices = tuple((canonical.pretty(each), title or canonical.pretty(each)) for each, title in listed)
    is_null_by_default = not is_required and "default" in says.schema and says.schema["default"] is None
    meanings = (
        *([] if is_required else [OUT]),
        *([NULL] if says.nullable and not is_null_by_default else []),
        *([TEXT] if kind == "text" else []),
    )
    value = (given or {}).get(name, says.schema.get("default"))
    is_given = name in given if given is not None else value is not None
    text = value if isinstance(value, str) and kind == "text" else canonical.pretty(value)
    if value is None and (not is_given or NULL in meanings or is_null_by_default):
        text = ""
    # An argument that was there is empty when its field is emptied.
    meant = OUT if not is_given else NULL if value is None else TEXT
    if kind == "choice" and NULL in meanings:
        choices = (*choices, ("null", "null"))
        text = "null" if value is None and is_given else text
    return Field(
        name=name,
        kind=kind,
        word=type_word(says.schema, schema) + (" or null" if says.nullable else ""),
        description=str(says.schema.get("description", "")),
        required=is_required,
        value=text,
        choices=choices,
        sample=_sample(says, schema),
        meanings=meanings,
        empty=meant if meant in meanings else next(iter(meanings), ""),
    )


def _kind(says: Plain) -> str:
    return "choice" if says.choices else _KINDS.get(str(says.schema.get("type")), "json")


def _sample(says: Plain, root: Schema) -> str:
    """Return an example for a field whose format is not obvious; empty for plain text."""
    if _kind(says) == "text" and says.schema.get("format") not in _SAMPLES:
        return ""
    made = _sample_value(says.schema, root, DEEPEST_SAMPLE)
    return made if isinstance(made, str) else canonical.pretty(made)


def _sample_value(part: Any, root: Schema, depth: int) -> Any:
    if not isinstance(part, dict) or depth == 0:
        return "…"
    says = plain(part, root)
    if says.choices:
        return says.choices[0][0]
    match says.schema.get("type"):
        case "array":
            items = says.schema.get("items")
            return [_sample_value(items, root, depth - 1)] if items is not None else []
        case "object":
            parts = says.schema.get("properties", {})
            return {name: _sample_value(each, root, depth - 1) for name, each in parts.items()}
    form = says.schema.get("format")
    return _SAMPLES.get(str(form if form in _SAMPLES else says.schema.get("type")), "…")
