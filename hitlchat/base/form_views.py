"""The fields of a form as pages show them: text as text, each with what is expected and what is wrong with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hitlchat.base.forms import LARGEST_INTEGER, LONGEST_TEXT, Field, Value
from hitlchat.base.sentences import part
from hitlchat.base.visible import Seen, see

MOST_RADIOS = 6
LONGEST_LINE = 200
_INPUTS = {"email": "email", "uri": "url", "date": "date"}
_EXAMPLES = {
    "date-time": part("such as 2027-01-31T18:00:00Z"),
    "uri": part("a whole address"),
    "email": part("an e-mail address"),
}


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


def view(index: int, field: Field, given: Sequence[str], error: str) -> FieldView:
    return FieldView(
        name=field_name(index),
        title=see(field.title),
        description=see(field.description) if field.description else None,
        hint=_hint(field),
        widget=_widget(field),
        input=_INPUTS.get(field.format, "text"),
        text=given[-1] if given else "",
        choices=_choices(field, given),
        required=field.required,
        error=error,
    )


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


def _hint(field: Field) -> str:
    """Return what is expected, in our own words."""
    match field.kind:
        case "text":
            said = [_EXAMPLES.get(field.format, ""), _range(field, " characters", LONGEST_TEXT)]
        case "integer" | "number":
            kind = part("a whole number") if field.kind == "integer" else part("a number")
            said = [kind, _range(field, "", LARGEST_INTEGER)]
        case "many":
            said = [part("any number of them") if field.least is None else ""]
            said.append(_range(field, " of them", len(field.options)))
        case _:
            said = []
    return ", ".join(filter(None, said))


def _range(field: Field, what: str, largest: int) -> str:
    least, most = field.least, None if field.most is None or field.most >= largest else field.most
    if what == " characters" and least == 1 and field.required:
        # That it must be filled in says as much.
        least = None
    if least and most:
        said = f"{least:g} to {most:g}"
    elif least is not None and (least or not what):
        said = f"at least {least:g}"
    else:
        said = "" if most is None else f"at most {most:g}"
    return f"{said}{what}" if said else ""


# What `_range` says.
RANGES: Final = (
    *(part("{least} to {most}"), part("at least {least}"), part("at most {most}")),
    *(part("{least} to {most} characters"), part("at least {least} characters"), part("at most {most} characters")),
    *(part("{least} to {most} of them"), part("at least {least} of them"), part("at most {most} of them")),
)
