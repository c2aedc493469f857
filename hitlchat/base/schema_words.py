"""Words for people: the type of a value, as its schema has it, and why a value does not fit."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jsonschema.exceptions import SchemaError, ValidationError

from hitlchat.base import canonical
from hitlchat.base.schemas import plain
from hitlchat.base.sentences import part, said_elsewhere

# So that the expected value still fits into the sentence.
LONGEST_VALUE: Final = 150

# The first of several types, and each that follows.
_TYPES: Final = {
    "string": (part("a text"), part("or a text")),
    "integer": (part("a whole number"), part("or a whole number")),
    "number": (part("a number"), part("or a number")),
    "boolean": (part("true or false"), part("or true or false")),
    "array": (part("a list"), part("or a list")),
    "object": (part("an object"), part("or an object")),
    "null": (part("null"), part("or null")),
}
# Why a value does not fit a keyword, with the value and that of the keyword.
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
_NOT_EMPTY, _EMPTY = said_elsewhere("{instance} should be non-empty.", "{instance} is expected to be empty.")
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
            name = "null"
        case bool():
            name = "boolean"
        case int() | float():
            name = "number"
        case str():
            name = "string"
        case list():
            name = "array"
        case _:
            name = "object"
    return _TYPES[name][0]


def types(names: str | Sequence[str]) -> str:
    """Return types of a schema in words: `a text or null`."""
    first, *others = [names] if isinstance(names, str) else names
    words = [_TYPES[first][0] if first in _TYPES else first]
    return " ".join(words + [_TYPES[each][1] if each in _TYPES else f"or {each}" for each in others])


def shown(value: Any) -> str:
    """Return a value as JSON in which every character can be seen, cut where it is long."""
    text = canonical.pretty(value)
    visible = (each if each.isprintable() else canonical.dumps(each)[1:-1] for each in text[:LONGEST_VALUE])
    return shortened(text, "".join(visible))


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
    # The error of a schema which takes nothing has no keyword.
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
    template = _SENTENCES.get(keyword)
    if template is None:
        return error.message
    if keyword in ("minLength", "minItems", "minProperties") and value == 1:
        template = _NOT_EMPTY
    elif keyword in ("maxLength", "maxItems", "maxProperties") and value == 0:
        template = _EMPTY
    expected = shortened(str(value)) if keyword in _AS_THEY_ARE else shown(value)
    names = dict.fromkeys(("least", "most", "step", "pattern", "format"), expected)
    return template.format(instance=expected if keyword == "const" else shown(instance), **names).removesuffix(".")
