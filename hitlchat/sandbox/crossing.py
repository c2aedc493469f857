"""Which values may go into and out of helper functions: plain ones, of bounded size. Used in a keeper."""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from hitlchat.sandbox.values import MAX_DEPTH, MAX_INTEGER_BITS, Meter, Unfit, type_name

PLAIN = (type(None), bool, float, date, datetime, time, timedelta)
# An exponent is a few characters, and a number of that many digits to whoever calculates with it.
DECIMAL_DIGITS = 400
EACH = 4


class Crossing:
    """Walks the values of one call. Unfit: one of them may not cross."""

    def __init__(self, what: str, limit: int, named: str = "") -> None:
        self._meter = Meter(what, limit, named)
        self._what = what

    def check(self, value: object, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise Unfit(f"{self._what} must not be nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, (list, tuple, set, frozenset)):
            self._all(value, depth)
        elif isinstance(value, dict):
            self._all(value.keys(), depth)
            self._all(value.values(), depth)
        else:
            self._one(value)

    def _all(self, values: Iterable[object], depth: int) -> None:
        self._meter.add(EACH)
        for value in values:
            self.check(value, depth + 1)

    def _one(self, value: object) -> None:
        if type(value) in PLAIN:
            self._meter.add(EACH)
        elif type(value) is str:
            self._meter.add_text(value)
        elif type(value) is bytes:
            self._meter.add(len(value))
        elif type(value) is int:
            self._integer(value)
        elif type(value) is Decimal:
            self._decimal(value)
        else:
            raise Unfit(f"{self._what}: helper functions take plain values, not {type_name(value)}")

    def _integer(self, value: int) -> None:
        if value.bit_length() > MAX_INTEGER_BITS:
            raise Unfit(f"{self._what}: an integer may have at most {MAX_INTEGER_BITS} bits")
        self._meter.add(EACH + value.bit_length() // 8)

    def _decimal(self, value: Decimal) -> None:
        digits = len(value.as_tuple().digits)
        if value.is_finite() and max(digits, abs(value.adjusted()), digits + abs(value.adjusted())) > DECIMAL_DIGITS:
            raise Unfit(f"{self._what}: a Decimal may have at most {DECIMAL_DIGITS} digits")
        self._meter.add(EACH + digits)
