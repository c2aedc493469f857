"""Questions to a person: a tool whose result is the person's own answer, given with the yes to its call.

The approval is the open question, so it is as durable, and a yes without an answer that fits is none. Which tools these
are is told by their source; their arguments are a `question` and the `fields` of a small form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from django.utils.translation import gettext_noop

from hitlchat.base import canonical, forms
from hitlchat.base.canonical import storable
from hitlchat.base.forms import BadAnswer, Field, FieldView, Kind, Option, Value, checked, field_name
from hitlchat.base.visible import Seen, see
from hitlchat.secrets.detection import seems_to_ask

SOURCE: Final = "person"
ANSWER: Final = "answer"
MOST_FIELDS, MOST_CHOICES = 5, 20
LONGEST_QUESTION, LONGEST_LABEL = 2000, 200
NO_ANSWER: Final = gettext_noop(
    "This call asks a question: a yes needs an “answer”, an object with a value for each field."
)
SAME_QUESTION: Final = gettext_noop("An answer cannot change the question or its fields.")
_KINDS: Final[Mapping[str, Kind]] = {"text": "text", "number": "number", "choice": "one", "yes_no": "boolean"}

_FIELD: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$"},
        "label": {"type": "string", "minLength": 1, "maxLength": LONGEST_LABEL},
        "kind": {"type": "string", "enum": [*_KINDS]},
        "choices": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_LABEL},
            "maxItems": MOST_CHOICES,
            "description": "What can be chosen, for the kind choice only.",
        },
        "required": {"type": "boolean", "default": True},
    },
    "required": ["name", "label", "kind"],
    "additionalProperties": False,
}
INPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "minLength": 1, "maxLength": LONGEST_QUESTION},
        "fields": {
            "type": "array",
            "items": _FIELD,
            "minItems": 1,
            "description": f"The form below the question, at most {MOST_FIELDS} fields; without it, one text.",
            "default": [{"name": "answer", "label": "Your answer", "kind": "text", "required": True}],
        },
    },
    "required": ["question"],
}


class Sourced(Protocol):
    """A tool, or a call of one."""

    @property
    def source(self) -> str: ...


class BadQuestion(ValueError):
    """The question cannot be asked; the message names what is wrong with it."""


@dataclass(frozen=True)
class Asking:
    """A question as its card shows it."""

    text: Seen
    fields: tuple[FieldView, ...]
    seems_secret: bool

    @property
    def errors(self) -> int:
        return sum(bool(field.error) for field in self.fields)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings about all of its texts, each sentence once."""
        titles = [field.title for field in self.fields]
        choices = [choice.title for field in self.fields for choice in field.choices]
        return tuple(dict.fromkeys(warning for seen in (self.text, *titles, *choices) for warning in seen.warnings))


def is_one(tool_or_call: Sourced) -> bool:
    """Return whether a tool, or a call of one, asks a person instead of doing something."""
    return tool_or_call.source == SOURCE


def check(arguments: Mapping[str, Any]) -> None:
    """Check what INPUT_SCHEMA cannot say of arguments that fit it. Raises: BadQuestion"""
    if ANSWER in arguments:
        raise BadQuestion("answer: only the person gives it. Ask without it.")
    if unknown := sorted(arguments.keys() - INPUT_SCHEMA["properties"].keys()):
        raise BadQuestion(f"{unknown[0][:64]}: there is no such argument; expected question and fields.")
    if not str(arguments["question"]).strip():
        raise BadQuestion("question: it is empty.")
    names = [each["name"] for each in arguments["fields"]]
    if len(names) > MOST_FIELDS:
        raise BadQuestion(f"fields: at most {MOST_FIELDS} are shown, not {len(names)}.")
    if len(set(names)) < len(names):
        raise BadQuestion("fields: two of them have the same name.")
    for each in arguments["fields"]:
        _check_choices(each)


def fields(arguments: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return the fields of the form, of arguments that were checked."""
    return tuple(
        Field(
            name=each["name"],
            kind=_KINDS[each["kind"]],
            title=each["label"],
            required=each.get("required", True),
            least=1 if each.get("required", True) and each["kind"] == "text" else None,
            options=tuple(Option(text, text) for text in each.get("choices", [])),
        )
        for each in arguments["fields"]
    )


def answered(arguments: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments with the answer in them. `given` may repeat the question.

    Raises: BadAnswer, its errors by field; of the answer as a whole under the empty name.
    """
    answer = (given or {}).get(ANSWER)
    if given is None or not isinstance(answer, Mapping):
        raise BadAnswer({"": NO_ANSWER})
    rest = {name: value for name, value in given.items() if name != ANSWER}
    if any(name not in arguments or not _is_same(value, arguments[name]) for name, value in rest.items()):
        raise BadAnswer({"": SAME_QUESTION})
    unanswered = {name: value for name, value in arguments.items() if name != ANSWER}
    return unanswered | {ANSWER: checked(fields(arguments), answer)}


def answer_of(arguments: Mapping[str, Any]) -> dict[str, Value]:
    """Return the answer in the arguments of a call that was approved. Raises: BadAnswer"""
    found: dict[str, Value] = answered(arguments, arguments)[ANSWER]
    return found


def asking_of(
    arguments: Mapping[str, Any],
    typed: Sequence[Sequence[str]] | None = None,
    errors: Mapping[str, str] | None = None,
) -> Asking:
    """Return the question as a page shows it; `typed` and `errors`: what stood in its form, and what is wrong."""
    form = fields(arguments)
    views = forms.views(form, [()] * len(form) if typed is None else typed, errors)
    return Asking(see(str(arguments["question"])), views, _seems_secret(arguments, form))


def typed_names(arguments: Mapping[str, Any]) -> list[str]:
    """Return what a page's form sends the fields as."""
    return [field_name(index) for index, _ in enumerate(arguments["fields"])]


def as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    form = [{"choices": [], "required": True} | each for each in arguments["fields"]]
    return {
        "text": arguments["question"],
        "fields": form,
        "seemsSecret": _seems_secret(arguments, fields(arguments)),
    }


def in_words(arguments: Mapping[str, Any]) -> str:
    """Return the answer in `arguments` on one line, each value with its label."""
    answer: Mapping[str, Any] = arguments.get(ANSWER, {})
    labels = {field.name: field.title for field in fields(arguments)}
    words = {True: "yes", False: "no"}
    values = {name: words[value] if isinstance(value, bool) else str(value) for name, value in answer.items()}
    if len(labels) == 1:
        return next(iter(values.values()), "")
    return ", ".join(f"{labels.get(name, name)}: {value}" for name, value in values.items())


def _check_choices(field: Mapping[str, Any]) -> None:
    choices, where = field.get("choices", []), f"fields: {field['name']}"
    if field["kind"] != "choice" and choices:
        raise BadQuestion(f"{where} has choices, which only the kind choice has.")
    if field["kind"] == "choice" and len(choices) < 2:
        raise BadQuestion(f"{where} needs at least two choices.")
    if len(set(choices)) < len(choices):
        raise BadQuestion(f"{where} has the same choice twice.")
    if any(storable(text) != text for text in (field["label"], *choices)):
        raise BadQuestion(f"{where} has a character that cannot be stored, such as U+0000.")


def _is_same(one: Any, other: Any) -> bool:
    # As text: to Python, `1`, `1.0` and `True` would be equal.
    try:
        return canonical.dumps(one) == canonical.dumps(other)
    except canonical.NotJson:
        return False


def _seems_secret(arguments: Mapping[str, Any], form: Sequence[Field]) -> bool:
    return any(
        seems_to_ask((field.name, field.title, str(arguments["question"])), number=field.is_number)
        for field in form
        if field.is_typed
    )
