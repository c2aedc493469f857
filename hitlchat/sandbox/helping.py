"""Calls of helper functions: counted, timed, with plain values in and out. Used in a keeper."""

import logging
from dataclasses import dataclass
from typing import Any, cast

from pydantic_monty import AsyncFunctionSnapshot, ExternalExceptionData, ExternalReturnValue

from hitlchat.sandbox import helpers
from hitlchat.sandbox.crossing import Crossing
from hitlchat.sandbox.limits import Limits, in_words
from hitlchat.sandbox.report import Fault, Stopped
from hitlchat.sandbox.values import TooLarge, Unfit
from hitlchat.sandbox.worked import Worked

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
