"""Calls of helper functions, and what a run asks of the server. Used in a keeper."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, cast

from pydantic_monty import AsyncFunctionSnapshot, ExternalExceptionData, ExternalReturnValue

from hitlchat.sandbox import helpers
from hitlchat.sandbox.limits import Limits, in_words
from hitlchat.sandbox.values import MAX_DEPTH, MAX_INTEGER_BITS, Meter, TooLarge, Unfit, type_name
from hitlchat.sandbox.wire import Channel, Fault, Stopped, Worked

HostAnswer = dict[str, Any]


class Asked:
    """The questions of one run. An answer is `{"value": …}` or `{"error": [type, message]}`."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[HostAnswer]] = {}

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> HostAnswer:
        """Return what the granted function `name` says to plain JSON arguments."""
        return await self._ask({"name": name, "args": args, "kwargs": kwargs})

    async def sleep(self, seconds: float) -> None:
        await self._ask({"sleep": seconds})

    def answered(self, message: dict[str, Any]) -> None:
        waiting = self._open.pop(message.pop("answer"), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def _ask(self, question: dict[str, Any]) -> HostAnswer:
        number = next(self._numbers)
        self._open[number] = asyncio.get_running_loop().create_future()
        await self._channel.send({"call": number, **question})
        return await self._open[number]


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


logger = logging.getLogger(__name__)

HELPER_RESULT_BYTES = 4 * 1024 * 1024
# What a tool may be told by name; what derives from one of these is told as that one.
TELLABLE = (TypeError, KeyError, IndexError, LookupError, OverflowError, ZeroDivisionError, AttributeError, ValueError)

Answer = ExternalReturnValue | ExternalExceptionData


@dataclass
class Helping:
    """The helper calls of one run."""

    limits: Limits
    powers: frozenset[str]
    worked: Worked
    calls: int = 0

    def answer(self, name: str, snapshot: AsyncFunctionSnapshot) -> Answer | str:
        """The function's value or error; a text is a refusal. Stopped: over a limit."""
        self.calls += 1
        if self.calls > self.limits.helper_calls:
            most = f"{self.limits.helper_calls}{self.limits.named('helper_calls')}"
            raise Stopped(Fault("limit", f"helper calls: the tool makes more than {most}"))
        if refused := helpers.refused(name, self.powers):
            return refused
        with self.worked:
            return self._value(name, snapshot)

    def _value(self, name: str, snapshot: AsyncFunctionSnapshot) -> Answer:
        most = self.limits.argument_bytes
        crossing = Crossing(f"the arguments of {name}", most, self.limits.named("argument_bytes"))
        try:
            crossing.check(snapshot.args)
            crossing.check(snapshot.kwargs)
        except Unfit as unfit:
            return _error(ValueError if isinstance(unfit, TooLarge) else TypeError, str(unfit))
        try:
            value = helpers.FUNCTIONS[name](*snapshot.args, **snapshot.kwargs)
            Crossing(f"the result of {name}", HELPER_RESULT_BYTES).check(value)
        except Unfit:
            return _error(ValueError, f"the result of {name} is larger than {in_words(HELPER_RESULT_BYTES)}")
        except MemoryError:
            raise Stopped(Fault("limit", f"memory: what {name} makes of its arguments is too large")) from None
        except TELLABLE as error:
            kind = next(each for each in TELLABLE if isinstance(error, each))
            return _error(kind, str(error.args[0]) if len(error.args) == 1 else str(error))
        except Exception as error:
            # Only the type: the message may quote what the tool passed, and with it forge a line of the log.
            logger.exception("the helper %s failed with %s", name, type(error).__name__, exc_info=False)  # noqa: LOG007
            return _error(ValueError, f"{name} failed")
        return {"return_value": value}


def _error(kind: type[Exception], message: str) -> ExternalExceptionData:
    return {"exc_type": cast("Any", kind.__name__), "message": message}
