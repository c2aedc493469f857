"""Words for people: the type of a value, as its schema has it, and why a value does not fit."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jsonschema.exceptions import SchemaError, ValidationError

from hitlchat.base import canonical
from hitlchat.base.schemas import plain
from hitlchat.base.sentences import part, said_elsewhere

# So that what was expected still fits into the sentence.
LONGEST_VALUE: Final = 150

_TYPES: Final = {
    "string": part("a text"),
    "integer": part("a whole number"),
    "number": part("a number"),
    "boolean": part("true or false"),
    "array": part("a list"),
    "object": part("an object"),
    "null": part("null"),
}
_OR_TYPES: Final = {
    "string": part("or a text"),
    "integer": part("or a whole number"),
    "number": part("or a number"),
    "boolean": part("or true or false"),
    "array": part("or a list"),
    "object": part("or an object"),
    "null": part("or null"),
}
# What does not fit a keyword, in a sentence with the value, and with that of the keyword.
_SENTENCES: Final = dict(
    zip(
        (
            *("const", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
            *("minLength", "minItems", "maxLength", "maxItems", "items", "minProperties", "maxProperties"),
            *("uniqueItems", "pattern", "format", "contains", "minContains", "maxContains", "not", "oneOf"),
        ),
        said_elsewhere(
            "{instance} was expected.",
            "{instance} is less than the minimum of {least}.",
            "{instance} is less than or equal to the minimum of {least}.",
            "{instance} is greater than the maximum of {most}.",
            "{instance} is greater than or equal to the maximum of {most}.",
            "{instance} is not a multiple of {step}.",
            "{instance} is too short.",
            "{instance} is too short.",
            "{instance} is too long.",
            "{instance} is too long.",
            "{instance} is too long.",
            "{instance} does not have enough properties.",
            "{instance} has too many properties.",
            "{instance} has non-unique elements.",
            "{instance} does not match the pattern {pattern}.",
            "{instance} is not a {format}.",
            "{instance} does not contain what it should.",
            "{instance} contains too few of what it should.",
            "{instance} contains too many of what it should.",
            "{instance} is not allowed here.",
            "{instance} fits more than one of the forms of which it should be one.",
        ),
        strict=True,
    )
)
_EMPTY: Final = dict(
    zip(
        ("minLength", "minItems", "minProperties", "maxLength", "maxItems", "maxProperties"),
        said_elsewhere(
            "{instance} should be non-empty.",
            "{instance} should be non-empty.",
            "{instance} should be non-empty.",
            "{instance} is expected to be empty.",
            "{instance} is expected to be empty.",
            "{instance} is expected to be empty.",
        ),
        strict=True,
    )
)
# Texts that are no JSON: as they stand in the schema.
_AS_THEY_ARE: Final = {"pattern", "format"}
SAID: Final = said_elsewhere(
    "{instance} is not {json_types}.",
    "{instance} is not one of {values}.",
    "{field}: it is required.",
    "{field}: it is required when {name} is given.",
    "{instance} was unexpected.",
    "{instance} were unexpected.",
    "{instance} fits none of the forms that are allowed.",
)


def type_word(part: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return the type of a value in few words, such as `integer or null`, as `part` of the schema `root` has it."""
    found = plain(part, root)
    words = _words(found.schema, root) or ["one of" if found.choices else "any"]
    return " or ".join([*words, *(["null"] if found.nullable else [])])


def _words(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[str]:
    word = schema.get("format") or schema.get("type")
    if word:
        return [str(each) for each in word] if isinstance(word, list) else [str(word)]
    branches = schema.get("anyOf", schema.get("oneOf"))
    typed = [plain(each, root).schema for each in branches or () if isinstance(each, Mapping)]
    words = [str(each["type"]) for each in typed if isinstance(each.get("type"), str)]
    return [*dict.fromkeys(words)] if branches and len(words) == len(branches) else []


def kind_of(value: Any) -> str:
    """Return the type of a JSON value in words."""
    match value:
        case None:
            return _TYPES["null"]
        case bool():
            return _TYPES["boolean"]
        case int() | float():
            return _TYPES["number"]
        case str():
            return _TYPES["string"]
        case list():
            return _TYPES["array"]
    return _TYPES["object"]


def types(names: str | Sequence[str]) -> str:
    """Return types of a schema in words: `a text or null`."""
    first, *others = [names] if isinstance(names, str) else names
    return " ".join([_TYPES.get(first, first), *(_OR_TYPES.get(each, f"or {each}") for each in others)])


def shown(value: Any) -> str:
    """Return a value as JSON in which every character can be seen, cut where it is long."""
    text = canonical.pretty(value)
    return shortened(text, "".join(each if each.isprintable() else _escaped(each) for each in text[:LONGEST_VALUE]))


def _escaped(character: str) -> str:
    return canonical.dumps(character)[1:-1]


def listed(values: Sequence[Any]) -> str:
    """Return values as JSON, with commas between them, cut where that is long."""
    return shortened(", ".join(map(shown, values)))


def shortened(text: str, shown: str = "") -> str:
    """Return a text, cut where it is long; `shown`: its beginning as it is to be shown."""
    shown = shown or text[:LONGEST_VALUE]
    return shown if len(text) <= LONGEST_VALUE else f"{shown}… ({len(text) - LONGEST_VALUE:,} more characters)"


def unexpected(names: Sequence[Any]) -> str:
    """Return that these are not expected, without a full stop."""
    return f"{listed(names)} {'was' if len(names) == 1 else 'were'} unexpected"


def problem(error: ValidationError | SchemaError) -> str:
    """Return why a value does not fit, in a sentence without its full stop, and without the place of the value."""
    value: Any = error.validator_value
    instance: Any = error.instance
    # That of a schema which takes nothing has none.
    keyword = str(error.validator or "not")
    match keyword:
        case "type":
            return f"{shown(instance)} is not {types(value)}"
        case "enum":
            return f"{shown(instance)} is not one of {listed(value)}"
        case "anyOf" | "oneOf" if keyword == "anyOf" or not error.message:
            return f"{shown(instance)} fits none of the forms that are allowed"
        case "unevaluatedProperties" | "unevaluatedItems":
            # The names, as the library has them in its message.
            return unexpected([each for each in instance if repr(each) in error.message])
    template = _EMPTY.get(keyword) if value == (1 if keyword.startswith("min") else 0) else None
    template = template or _SENTENCES.get(keyword)
    if template is None:
        return error.message
    said = shortened(str(value)) if keyword in _AS_THEY_ARE else shown(value)
    names = dict.fromkeys(("least", "most", "step", "pattern", "format"), said)
    return template.format(instance=said if keyword == "const" else shown(instance), **names).removesuffix(".")
