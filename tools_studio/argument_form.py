"""A form made from a tool's schema, and the JSON arguments made from what was typed into it."""

from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from hitlchat.base import canonical
from hitlchat.base.visible import see

PREFIX = "arg-"
DEEPEST_SAMPLE = 3


class BadInput(ValueError):
    """The text of a field can't be read as what its argument needs; the message names the argument."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.html_name = PREFIX + name


@dataclass(frozen=True)
class Field:
    name: str
    kind: str
    word: str
    description: str
    required: bool
    value: str
    choices: tuple[str, ...] = ()
    sample: str = ""

    @property
    def html_name(self) -> str:
        return PREFIX + self.name

    @property
    def options(self) -> list[tuple[str, str]]:
        """Return the choices of a list, each with its label, which has nothing that cannot be seen."""
        return [(choice, see(choice).plain) for choice in self.choices]


def fields(schema: dict[str, Any], example: dict[str, Any] | None) -> list[Field]:
    """Return one field for each argument, filled with the example or the default."""
    required = set(schema.get("required", []))
    return [_field(name, part, name in required, example or {}) for name, part in schema.get("properties", {}).items()]


def arguments(schema: dict[str, Any], typed: QueryDict) -> dict[str, Any]:
    """The arguments as typed. An empty field that isn't required is left out. BadInput."""
    required = set(schema.get("required", []))
    found: dict[str, Any] = {}
    for name, part in schema.get("properties", {}).items():
        # A browser sends each line's end as two characters.
        text = str(typed.get(PREFIX + name, "")).replace("\r\n", "\n")
        if text == "" and (name not in required or _kind(part) != "text"):
            if name in required:
                raise BadInput(name, "it is required.")
            continue
        found[name] = _value(name, _kind(part), text)
    return found


def _field(name: str, part: dict[str, Any], required: bool, example: dict[str, Any]) -> Field:
    kind = _kind(part)
    given = example.get(name, part.get("default"))
    choices = tuple(canonical.pretty(choice) for choice in part.get("enum", ())) if kind == "choice" else ()
    choices = ("true", "false") if kind == "choice-boolean" else choices
    text = "" if given is None else given if isinstance(given, str) and kind == "text" else canonical.pretty(given)
    word = str(part.get("format") or part.get("type") or ("one of" if choices else "JSON"))
    return Field(name, kind, word, part.get("description", ""), required, text, choices, _sample(part))


def _kind(part: dict[str, Any]) -> str:
    if "enum" in part or "const" in part:
        return "choice" if "enum" in part else "json"
    match part.get("type"):
        case "string":
            return "text"
        case "integer":
            return "integer"
        case "number":
            return "number"
        case "boolean":
            return "choice-boolean"
        case _:
            return "json"


def _value(name: str, kind: str, text: str) -> Any:
    if kind == "text":
        return text
    try:
        return canonical.loads(text)
    except canonical.NotJson as error:
        expected = {"integer": "a whole number", "number": "a number"}.get(kind, 'JSON, such as [1, 2] or {"a": 1}')
        raise BadInput(name, f"expected {expected}.") from error


_SAMPLES = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "decimal": "12.50",
    "integer": 3,
    "number": 1.5,
    "boolean": True,
    "string": "text",
}


def _sample(part: dict[str, Any]) -> str:
    """Return what a value looks like, for a field in which that is not plain."""
    if _kind(part) == "text" and part.get("format") not in _SAMPLES:
        return ""
    made = _sample_value(part, DEEPEST_SAMPLE)
    return made if isinstance(made, str) else canonical.pretty(made)


def _sample_value(part: Any, depth: int) -> Any:
    if not isinstance(part, dict) or depth == 0:
        return "…"
    if part.get("enum"):
        return part["enum"][0]
    match part.get("type"):
        case "array":
            return [_sample_value(part.get("items", {}), depth - 1)] if "items" in part else []
        case "object":
            return {name: _sample_value(each, depth - 1) for name, each in part.get("properties", {}).items()}
    kind = part.get("format") if part.get("format") in _SAMPLES else part.get("type")
    return _SAMPLES.get(str(kind), "…")
