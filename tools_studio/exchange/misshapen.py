"""What a schema finds wrong with a file, in sentences. Values are not repeated in them: they may be of any size."""

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from hitlchat.base import canonical
from tools_studio.exchange.problems import Problem, cut, dotted
from tools_studio.exchange.shape import FRAME, TOOL

Path = list[str | int]

FRAME_SHAPE, TOOL_SHAPE = Draft202012Validator(FRAME), Draft202012Validator(TOOL)
_WORDS = {"string": "a text", "object": "an object", "array": "a list", "integer": "a whole number"}
_WORDS |= {"boolean": "true or false", "null": "null"}


def misshapen(shape: Draft202012Validator, value: Any, path: Path) -> Iterator[Problem]:
    """Everything about `value`, which stands at `path`, that `shape` does not allow."""
    for error in shape.iter_errors(value):
        place: Path = [*path, *error.absolute_path]
        match error.validator:
            case "additionalProperties":
                for key in _unknown(error):
                    yield Problem(dotted([*place, cut(key)]), "It is not known here.")
            case "required":
                yield Problem(dotted([*place, _missing(error)]), "It is missing.")
            case _:
                yield Problem(dotted(place), _sentence(error))


def _unknown(error: ValidationError) -> list[str]:
    schema: Any = error.schema
    found: Any = error.instance
    return sorted(set(found) - set(schema["properties"]))


def _missing(error: ValidationError) -> str:
    """There is one error for each key that is missing, all alike but for their message."""
    keys: Any = error.validator_value
    return next(str(key) for key in keys if error.message.startswith(repr(key)))


def _sentence(error: ValidationError) -> str:
    bound: Any = error.validator_value
    found: Any = error.instance
    match error.validator:
        case "type":
            types = [bound] if isinstance(bound, str) else bound
            return f"Expected {' or '.join(_WORDS[each] for each in types)}."
        case "enum":
            return f"Expected one of {', '.join(map(canonical.pretty, bound))}."
        case "minItems" | "minLength":
            return "It is empty."
        case "maxItems" | "maxLength":
            return f"At most {bound}, not {len(found):,}."
        case "pattern":
            return "Expected 64 hexadecimal digits."
        case _:
            return error.message
