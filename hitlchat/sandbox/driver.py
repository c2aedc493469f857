"""Runs fed code to its end and answers, one by one, what it asks of the host."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_monty import (
    AsyncFunctionSnapshot,
    AsyncFutureSnapshot,
    AsyncMontySession,
    AsyncNameLookupSnapshot,
    ExternalExceptionData,
    ExternalReturnValue,
    ExternalSettledResult,
    MontyComplete,
)

from .faults import SOURCE, over_calls
from .grants import MODULE, HostFunction, not_granted
from .limits import Limits
from .output import Output
from .report import Fault, Stopped
from .values import Meter, Unfit, check_inwards, to_json

logger = logging.getLogger(__name__)

Snapshot = AsyncFunctionSnapshot | AsyncNameLookupSnapshot | AsyncFutureSnapshot | MontyComplete
Answer = ExternalReturnValue | ExternalExceptionData

# The only types of error that reach a tool with their message; exactly these, not what derives from them.
TELLABLE = (ValueError, TypeError, KeyError, TimeoutError, PermissionError)
HOST_RESULT_BYTES = 4 * 1024 * 1024
IMPORTS = ("import", "import_stubs")
SLEEPS = ("time.sleep", "asyncio.sleep", "system.sleep", "system.async_sleep")
BLOCKING_SLEEPS = ("time.sleep", "system.sleep")
CLOCKS = ("datetime.now", "date.today", "time.time")
NO_CLOCK = f"the clock is not granted to this tool: switch on the capability 'now' and use: from {MODULE} import now"
NO_RANDOM = "chance is not granted to this tool: give random a seed, as in random.seed(1)"


@dataclass
class Driver:
    """Drives one session. `calls_allowed` is false while the definitions are read, `together` true for `async def`."""

    source: str
    grants: Mapping[str, HostFunction]
    known: Collection[str]
    limits: Limits
    sleep: Callable[[float], Awaitable[None]]
    together: bool
    output: Output
    calls_allowed: bool = False
    refusals: set[str] = field(default_factory=set)
    _calls: int = 0
    _slept: float = 0.0
    _pending: "dict[int, asyncio.Task[Answer]]" = field(default_factory=dict)

    async def feed(
        self,
        session: AsyncMontySession,
        code: str,
        inputs: dict[str, Any] | None = None,
        *,
        type_check: bool = False,
    ) -> MontyComplete:
        """Run `code` to its end. Stopped: the driver ended it. MontyError: the interpreter did."""
        snapshot: Snapshot = await session.feed_start(
            code, inputs=inputs, print_callback=self.output.write, skip_type_check=not type_check
        )
        try:
            while not isinstance(snapshot, MontyComplete):
                snapshot = await self._step(snapshot)
        finally:
            await self._drop_pending()
        return snapshot

    async def _step(self, snapshot: AsyncFunctionSnapshot | AsyncNameLookupSnapshot | AsyncFutureSnapshot) -> Snapshot:
        if isinstance(snapshot, AsyncNameLookupSnapshot):
            return await snapshot.resume()  # stays undefined
        if isinstance(snapshot, AsyncFutureSnapshot):
            return await snapshot.resume(await self._settled(snapshot.pending_call_ids))
        name = str(snapshot.function_name)
        if not snapshot.is_os_function:
            return await self._host_call(snapshot, name)
        if name in IMPORTS:
            return await snapshot.resume_auto()
        if name in SLEEPS:
            return await self._answer(snapshot, self._nap(snapshot.args[0] if snapshot.args else 0))
        return await snapshot.resume(self._refusal(_no_os(name)))

    async def _host_call(self, snapshot: AsyncFunctionSnapshot, name: str) -> Snapshot:
        dotted = name.removeprefix(f"{MODULE}.")
        if dotted == name:  # an undefined name that is called comes as a call
            return await snapshot.resume({"exc_type": "NameError", "message": f"name {name!r} is not defined"})
        if dotted not in self.grants:
            return await snapshot.resume(self._refusal(not_granted(dotted)))
        if not self.calls_allowed:
            message = f"call {dotted} inside a function, not while the module loads"
            raise Stopped(Fault("error", message, self._line(snapshot)))
        self._calls += 1
        if self._calls > self.limits.host_calls:
            raise Stopped(Fault("limit", over_calls(self.limits), self._line(snapshot)))
        return await self._answer(snapshot, self._outcome(dotted, snapshot.args, snapshot.kwargs))

    async def _answer(self, snapshot: AsyncFunctionSnapshot, work: Coroutine[Any, Any, Answer]) -> Snapshot:
        """Wait for plain calls; hand `async def` tools a future, so that what they gather runs at once."""
        if self.together and snapshot.function_name not in BLOCKING_SLEEPS:
            self._pending[snapshot.call_id] = asyncio.ensure_future(work)
            return await snapshot.resume({"future": ...})
        return await snapshot.resume(await work)

    async def _outcome(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """What the granted function returns or raises, as the tool may see it."""
        function = self.grants[name]
        try:
            passed, named = self._arguments(name, function, args, kwargs)
        except TypeError as error:
            return {"exc_type": "TypeError", "message": str(error)}
        try:
            value = await function(*passed, **named)
            check_inwards(value, Meter(f"the result of {name}", HOST_RESULT_BYTES))
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            logger.warning("the host function %r was cancelled", name)
        except Unfit as unfit:
            logger.warning("the host function %r answered with what cannot cross: %s", name, unfit)
            return {"exc_type": "ValueError", "message": str(unfit)}
        except Exception as error:
            if type(error) in TELLABLE:
                return self._told(error)
            logger.exception("the host function %r failed", name)
        else:
            return {"return_value": value}
        return {"exc_type": "RuntimeError", "message": "the host function failed"}

    def _arguments(
        self, name: str, function: HostFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as plain JSON. TypeError: they do not fit, in words that name nothing of ours."""
        meter = Meter(f"the arguments of {name}", self.limits.argument_bytes)
        try:
            passed, named = to_json(list(args), meter), to_json(kwargs, meter)
            inspect.signature(function).bind(*passed, **named)
        except Unfit as unfit:
            raise TypeError(str(unfit)) from None
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        return passed, named

    def _told(self, error: Exception) -> Answer:
        message = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)
        if isinstance(error, PermissionError):
            return self._refusal(message)
        return {"exc_type": cast("Any", type(error).__name__), "message": message}

    def _refusal(self, message: str) -> ExternalExceptionData:
        self.refusals.add(message)
        return {"exc_type": "PermissionError", "message": message}

    async def _nap(self, seconds: object) -> Answer:
        if not isinstance(seconds, int | float) or not seconds >= 0:
            return {"exc_type": "ValueError", "message": "sleep length must be a number of seconds, not negative"}
        self._slept += seconds
        if self._slept > self.limits.sleep_seconds:
            raise Stopped(Fault("limit", f"sleep: the tool sleeps for more than {self.limits.sleep_seconds:g} s"))
        await self.sleep(seconds)
        return {"return_value": None}

    async def _settled(self, call_ids: list[int]) -> dict[int, ExternalSettledResult]:
        """The answers that are there, at least one."""
        tasks = {self._pending[call_id]: call_id for call_id in call_ids}
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        answers: dict[int, ExternalSettledResult] = {}
        for task in done:
            del self._pending[tasks[task]]
            answers[tasks[task]] = task.result()
        return answers

    async def _drop_pending(self) -> None:
        tasks = list(self._pending.values())
        self._pending.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _line(self, snapshot: AsyncFunctionSnapshot) -> int | None:
        if snapshot.position.filename != SOURCE:
            return None
        return self.source.encode()[: snapshot.position.start].count(b"\n") + 1


def _no_os(name: str) -> str:
    if name in CLOCKS:
        return NO_CLOCK
    if name == "os.urandom":
        return NO_RANDOM
    return f"tools have no files, processes or environment: {name} is refused"
