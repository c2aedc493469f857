"""From the schema that a server sends along with its question to the fields of a form."""

from collections.abc import Mapping
from typing import Any

from hitlchat.base.canonical import storable
from hitlchat.upstreams.asking.fields import FORMATS, BadValue, Field, Kind, Option
from hitlchat.upstreams.judge.patterns import linear

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
    """One that does not fit is left out."""
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
    """From `enum` (with the older `enumNames`), or from `oneOf` or `anyOf` with a title each."""
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
