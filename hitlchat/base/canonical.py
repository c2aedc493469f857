"""One spelling for every JSON value, so that shown and executed arguments can be compared byte for byte."""

import hashlib
import json
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    TextField = models.TextField[Any, Any]
else:
    TextField = models.TextField

Json = Any
Object = dict[str, Any]

# Far below where reading a value again, in a deeper stack than the one that wrote it, would fail.
MAX_DEPTH = 200
_NO_NUL = {0: "\ufffd"}


class NotJson(ValueError):
    """The text or value is not JSON by RFC 8259 and I-JSON (RFC 7493); the message says where."""


def storable(text: str) -> str:
    """`text` without NUL and lone surrogates, which PostgreSQL and UTF-8 cannot store; each becomes U+FFFD."""
    return _whole(text.translate(_NO_NUL))


def most_argument_bytes() -> int:
    """Return how large the arguments of one call may be, in canonical JSON."""
    return int(settings.TOOL_ARGUMENT_KIB) * 1024


def dumps(value: Json) -> str:
    """ASCII only, keys sorted, no white space: equal values have equal text on every database."""
    return _encode(value, sort_keys=True)


def loads(text: str | bytes) -> Json:
    """Strict: duplicate keys, NaN and Infinity are refused, since readers disagree on their meaning."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise NotJson("nested too deeply") from error
    except UnicodeDecodeError as error:
        raise NotJson("not UTF-8 text") from error
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson("a number has too many digits") from error
    _check_depth(value)
    return value


def pretty(value: Json, indent: int | None = None) -> str:
    """Return JSON for people and models: in the order given, letters of every alphabet as themselves."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def without_half(text: str) -> tuple[str, str]:
    """Return a text that goes on without the first half of a character at its end, and that half, if there is one."""
    end = len(text) - ("\ud800" <= text[-1:] <= "\udbff")
    return text[:end], text[end:]


def whole(value: Json) -> Json:
    """Return a value that UTF-8 has a way to write, with U+FFFD for each lone surrogate in its texts and keys.

    NUL stays, since JSON has a way to write that.
    """
    return _mapped(value, lambda leaf: _whole(leaf) if isinstance(leaf, str) else leaf)


def alike(value: Json) -> Json:
    """Return the value with its numbers as JSON means them: 5 and 5.0 are one. For comparing, and never for running."""
    return _mapped(value, lambda leaf: int(leaf) if isinstance(leaf, float) and leaf.is_integer() else leaf)


def are_alike(one: Json, other: Json) -> bool:
    """Return whether two values are the same in JSON; to Python, 1 and true would be, too."""
    return dumps(alike(one)) == dumps(alike(other))


def sha256(value: Json) -> str:
    return hashlib.sha256(dumps(value).encode("ascii")).hexdigest()


def is_short(value: Json, characters: int) -> bool:
    """Return whether `value` is spelled in roughly so many characters at most, without looking at more of it."""
    left, parts = characters, [value]
    while parts and left >= 0:
        part = parts.pop()
        match part:
            case str():
                left -= len(part) + 3
            case dict() | list():
                left -= 2 * len(part) + 2
                if left >= 0:
                    parts += [*part, *part.values()] if isinstance(part, dict) else part
            case int():
                left -= part.bit_length() // 3 + 2
            case _:
                left -= 8
    return left >= 0


def _mapped(value: Json, leaf: Callable[[Json], Json]) -> Json:
    """Return the value with `leaf` applied to its keys, texts, numbers and constants."""
    match value:
        case dict():
            return {leaf(name): _mapped(part, leaf) for name, part in value.items()}
        case list():
            return [_mapped(part, leaf) for part in value]
        case _:
            return leaf(value)


def _whole(text: str) -> str:
    """Return the text with halves of characters put together where both are there, and U+FFFD for each lone one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _encode(value: Json, *, sort_keys: bool) -> str:
    _check_depth(value)
    try:
        return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(f"not a JSON value: {error}") from error


def _unique(pairs: list[tuple[str, Json]]) -> Object:
    found: Object = {}
    for key, value in pairs:
        if key in found:
            raise NotJson(f"the key {key[:80]!r} occurs twice")
        found[key] = value
    return found


def _no_constant(name: str) -> Json:
    raise NotJson(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise NotJson(f"the number {digits[:40]} is too large")
    return number


def _check_depth(value: Json) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        nested = [
            each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list | tuple)
        ]
        level = [child for children in nested for child in children]
        if not level:
            return
    raise NotJson("nested too deeply")


class JSONTextField(TextField):
    """A JSON value stored as text, its keys in the order given.

    Not the databases' own JSON types: PostgreSQL's jsonb reorders keys, rewrites large numbers and refuses NUL, so that
    a value read back could differ from the one that was approved.
    """

    # For django-stubs, which take every TextField for one of text.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any
    _pyi_lookup_exact_type: Any

    def from_db_value(self, value: str | None, *_: object) -> Json:
        return None if value is None else json.loads(value)

    def to_python(self, value: Json) -> Json:
        return value

    def get_prep_value(self, value: Json) -> str | None:
        return None if value is None else _encode(value, sort_keys=False)

    def value_to_string(self, obj: models.Model) -> str:
        return _encode(self.value_from_object(obj), sort_keys=False)
