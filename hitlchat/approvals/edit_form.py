"""The form in which a person changes the arguments of a call: a field for each argument, or all of it as JSON text."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from django.http import QueryDict

from hitlchat.base import canonical
from hitlchat.base.visible import is_hidden
from hitlchat.gate import editing
from hitlchat.gate.decide import BadEdit
from tools_studio import argument_form
from tools_studio.argument_form import BadInput, Field

Schema = dict[str, Any]
Arguments = dict[str, Any]

# How a text that does not fit its pattern is spoken of, where that is all that is wrong.
PATTERN = re.compile(r" does not match '([^']*)'\.\Z")
UNFIT = "These arguments can only be changed as JSON text."


@dataclass(frozen=True)
class Form:
    """As it is shown. `fields` is None when it shows `json`. A `problem` is at the field `at`, if it says so."""

    fields: list[Field] | None
    json: str
    problem: str = ""
    at: str = ""
    can_be_fields: bool = True


def filled(schema: Schema, arguments: Arguments, *, as_json: bool = False) -> Form:
    """With these arguments in it; as fields if that can say all of them."""
    fits = _fits(schema, arguments)
    fields = argument_form.fields(schema, arguments) if fits and not as_json else None
    return Form(fields, as_text(arguments), can_be_fields=_has_fields(schema))


def read(schema: Schema, typed: QueryDict, asked: Arguments) -> Arguments:
    """What was typed into it. A field that stays empty is the empty text if that was `asked`. BadInput, BadEdit."""
    if "json" in typed:
        return editing.read(str(typed["json"]).replace("\r\n", "\n"))
    return _still_empty(schema, typed, asked) | argument_form.arguments(schema, typed)


def _still_empty(schema: Schema, typed: QueryDict, asked: Arguments) -> Arguments:
    texts = [field for field in argument_form.fields(schema, {}) if field.kind == "text"]
    return {field.name: "" for field in texts if asked.get(field.name) == "" == typed.get(field.html_name)}


def again(schema: Schema, typed: QueryDict, error: BadInput | BadEdit) -> Form:
    """As it was typed, with what is wrong about it."""
    if "json" in typed:
        text = str(typed["json"]).replace("\r\n", "\n")
        return Form(None, text, _plain(str(error)), "json", can_be_fields=_has_fields(schema))
    fields = [_as_typed(field, typed) for field in argument_form.fields(schema, {})]
    return Form(fields, "", *_placed(error, fields))


def as_text(arguments: Arguments) -> str:
    """As JSON in which every character can be seen."""
    text = canonical.pretty(arguments, indent=2)
    return "".join(json.dumps(char)[1:-1] if is_hidden(char) else char for char in text)


def _placed(error: BadInput | BadEdit, fields: list[Field]) -> tuple[str, str]:
    if isinstance(error, BadInput):
        return str(error), error.html_name
    said = _plain(str(error))
    at = (field.html_name for field in fields if said.startswith((f"{field.name}: ", f"{field.name}.")))
    return said, next(at, "")


def _plain(said: str) -> str:
    """Without the language of patterns, which few read."""
    return PATTERN.sub(r" does not have the form that is asked for (pattern \1).", said)


def _as_typed(field: Field, typed: QueryDict) -> Field:
    return replace(field, value=str(typed.get(field.html_name, "")))


def _fits(schema: Schema, arguments: Arguments) -> bool:
    """Whether fields can hold the arguments as they are, and a person can see them in there."""
    if not _has_fields(schema) or any(map(is_hidden, canonical.pretty([arguments, list(schema["properties"])]))):
        return False
    typed = QueryDict(mutable=True)
    typed.update({field.html_name: field.value for field in argument_form.fields(schema, arguments)})
    try:
        # As text: to Python, `1`, `1.0` and `True` would be equal.
        return canonical.dumps(read(schema, typed, arguments)) == canonical.dumps(arguments)
    except BadInput:
        return False


def _has_fields(schema: Schema) -> bool:
    parts = schema.get("properties", {})
    return bool(parts) and all(isinstance(part, dict) for part in parts.values())
