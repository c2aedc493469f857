"""Values that may cross between a tool and the host, and as what.

Outwards everything becomes plain JSON. Inwards JSON plus dates and decimals is let through unchanged.
"""

import math
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from pydantic_monty import MontyClassProxy, MontyStdTypeProxy

from hitlchat.sandbox.limits import in_words

MAX_DEPTH = 100
MAX_INTEGER_BITS = 4096
# What a list or dict counts for besides its parts: little as text, but not in memory.
CONTAINER = 16
# What may cross in calls of helper functions as it is.
PLAIN = (type(None), bool, float, date, datetime, time, timedelta)
# An exponent is a few characters, and a number of that many digits to whoever calculates with it.
DECIMAL_DIGITS = 400
EACH = 4


class Unfit(Exception):
    """A value that may not cross; the message says which part and why."""


class TooLarge(Unfit):
    """A value over its size limit."""


class Meter:
    """Adds up the approximate JSON size and stops as soon as it is over the limit; `named` ends that message."""

    def __init__(self, what: str, limit: int, named: str = "") -> None:
        self.what = what
        self.limit = limit
        self.named = named
        self.used = 0

    def add(self, size: int) -> None:
        self.used += size
        if self.used > self.limit:
            raise TooLarge(f"{self.what} must not be larger than {in_words(self.limit)}{self.named}")

    def add_text(self, text: str) -> None:
        self.add(len(text))
        try:
            self.add(2 + (0 if text.isascii() else len(text.encode()) - len(text)))
        except UnicodeEncodeError:
            raise Unfit(f"{self.what} must not contain half a character (a lone surrogate)") from None


def to_json(value: object, meter: Meter, *, path: str = "", depth: int = 0) -> Any:
    """`value` as plain JSON; decimals and dates become text, tuples, sets and dataclasses the nearest shape."""
    if depth > MAX_DEPTH:
        raise Unfit(f"{meter.what} must not be nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        meter.add(CONTAINER)
        return {
            _key(k, meter, path): to_json(v, meter, path=_member(path, k), depth=depth + 1) for k, v in value.items()
        }
    if isinstance(value, MontyClassProxy) and value.is_dataclass:
        return to_json(value.attributes, meter, path=path, depth=depth + 1)
    if isinstance(value, (list, tuple, set, frozenset)):
        meter.add(CONTAINER)
        items = [to_json(item, meter, path=f"{path}[{n}]", depth=depth + 1) for n, item in enumerate(value)]
        return _ordered(items) if isinstance(value, (set, frozenset)) else items
    return _scalar(value, meter, path)


def check_inwards(value: object, meter: Meter, *, path: str = "", depth: int = 0) -> None:
    """Raise `Unfit` unless `value` is JSON, a date, a datetime, a Decimal, or a list, tuple or dict of those."""
    if depth > MAX_DEPTH:
        raise Unfit(f"{meter.what} must not be nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        meter.add(CONTAINER)
        for key, item in value.items():
            _key(key, meter, path)
            check_inwards(item, meter, path=_member(path, key), depth=depth + 1)
    elif isinstance(value, (list, tuple)):
        meter.add(CONTAINER)
        for number, item in enumerate(value):
            check_inwards(item, meter, path=f"{path}[{number}]", depth=depth + 1)
    else:
        _scalar(value, meter, path, finite=False)


def _scalar(value: object, meter: Meter, path: str, *, finite: bool = True) -> Any:
    # exact types, since a subclass could behave in its own way
    if value is None or type(value) is bool:
        meter.add(4)
        return value
    if type(value) is str:
        meter.add_text(value)
        return value
    if type(value) is int:
        _check_bits(value, _where(meter, path))
        meter.add(max(1, value.bit_length() // 3))
        return value
    if type(value) is float or isinstance(value, Decimal):
        if finite and not math.isfinite(value):
            raise Unfit(f"{_where(meter, path)}: JSON cannot hold {value}")
        meter.add(8 if isinstance(value, float) else 2 + len(str(value)))
        return str(value) if isinstance(value, Decimal) else value
    if isinstance(value, date):
        meter.add(26)
        return value.isoformat()
    raise Unfit(f"{_where(meter, path)}: JSON cannot hold a value of type {type_name(value)}")


def _check_bits(value: int, where: str) -> None:
    if value.bit_length() > MAX_INTEGER_BITS:
        raise Unfit(f"{where}: an integer may have at most {MAX_INTEGER_BITS} bits")


def _key(key: object, meter: Meter, path: str) -> str:
    if type(key) is not str:
        raise Unfit(f"{_where(meter, path)}: JSON keys are text, not {type_name(key)}")
    meter.add_text(key)
    return key


def _ordered(items: list[Any]) -> list[Any]:
    # sets have no order: a stable one keeps equal results equal
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=repr)


def _member(path: str, key: object) -> str:
    return f"{path}[{str(key)[:40]!r}]"


def _where(meter: Meter, path: str) -> str:
    return f"{meter.what} at {path}" if path else meter.what


def type_name(value: object) -> str:
    """The type as the tool's author knows it."""
    if isinstance(value, MontyClassProxy):
        return value.name
    if isinstance(value, MontyStdTypeProxy):
        return f"{value.kind} {value.name}"
    return type(value).__name__


def suspects(value: object, path: str = "") -> Iterator[str]:
    """Paths of texts that may be the printed form of something else.

    The interpreter hands out functions, patterns, ranges and cycles as text. Only it can tell such a text
    from a real one, so the engine asks it about these paths.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            yield from suspects(item, f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from suspects(item, f"{path}[{number}]")
    elif isinstance(value, MontyClassProxy):
        for name, item in value.attributes.items():
            yield from suspects(item, f"{path}.{name}")
    elif (
        isinstance(value, str)
        and len(value) < 1000
        and (value.endswith(")") or value.startswith(("<", "hitl")) or "..." in value)
    ):
        yield path


def check_plain(value: object, meter: Meter, depth: int = 0) -> None:
    """Check that a value may cross as it is in a call of a helper function. Raises: Unfit"""
    if depth > MAX_DEPTH:
        raise Unfit(f"{meter.what} must not be nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        parts: tuple[Iterable[object], ...] = (value.keys(), value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = (value,)
    elif type(value) is str:
        meter.add_text(value)
        return
    else:
        meter.add(_plain_size(value, meter.what))
        return
    for part in parts:
        meter.add(EACH)
        for each in part:
            check_plain(each, meter, depth + 1)


def _plain_size(value: object, what: str) -> int:
    if type(value) in PLAIN:
        return EACH
    if type(value) is bytes:
        return len(value)
    if type(value) is int:
        _check_bits(value, what)
        return EACH + value.bit_length() // 8
    if type(value) is Decimal:
        digits = len(value.as_tuple().digits)
        if value.is_finite() and max(digits, abs(value.adjusted()), digits + abs(value.adjusted())) > DECIMAL_DIGITS:
            raise Unfit(f"{what}: a Decimal may have at most {DECIMAL_DIGITS} digits")
        return EACH + digits
    raise Unfit(f"{what}: helper functions take plain values, not {type_name(value)}")
