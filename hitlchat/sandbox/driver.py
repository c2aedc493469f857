"""Runs fed code to its end and answers, one by one, what it asks. Used in a keeper."""

import asyncio
from collections.abc import Coroutine
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

from hitlchat.sandbox import helpers
from hitlchat.sandbox.asked import Asked
from hitlchat.sandbox.faults import SOURCE, over_calls
from hitlchat.sandbox.grants import MODULE, not_granted
from hitlchat.sandbox.helping import Helping
from hitlchat.sandbox.limits import Limits
from hitlchat.sandbox.report import Fault, Output, Stopped, Worked
from hitlchat.sandbox.values import Meter, Unfit, to_json

Snapshot = AsyncFunctionSnapshot | AsyncNameLookupSnapshot | AsyncFutureSnapshot | MontyComplete
Answer = ExternalReturnValue | ExternalExceptionData

IMPORTS = ("import", "import_stubs")
SLEEPS = ("time.sleep", "asyncio.sleep", "system.sleep", "system.async_sleep")
BLOCKING_SLEEPS = ("time.sleep", "system.sleep")
CLOCKS = ("datetime.now", "date.today", "time.time")
NO_CLOCK = f"the clock is not granted to this tool: switch on the capability 'now' and use: from {MODULE} import now"
NO_SLEEP = "sleeping is not granted to this tool: switch on the capability 'sleep'"
NO_RANDOM = (
    "chance is not granted to this tool: switch on the capability 'random', or give random a seed, as in random.seed(1)"
)


@dataclass
class Driver:
    """Drives one session. `calls_allowed` is false while the definitions are read, `together` true for `async def`."""

    source: str
    names: frozenset[str]
    powers: frozenset[str]
    known: list[str]
    limits: Limits
    together: bool
    asked: Asked
    output: Output
    calls_allowed: bool = False
    refusals: set[str] = field(default_factory=set)
    _calls: int = 0
    _slept: float = 0.0
    _pending: "dict[int, asyncio.Task[Answer]]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._worked = Worked(self.limits)
        self._helping = Helping(self.limits, self.powers, self._worked)

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
            return await self._called(snapshot, name)
        if name in IMPORTS:
            return await snapshot.resume_auto()
        if name in SLEEPS and "sleep" in self.powers:
            self._count(snapshot)
            return await self._answer(snapshot, self._nap(snapshot.args[0] if snapshot.args else 0))
        return await snapshot.resume(self._refusal(_no_os(name)))

    async def _called(self, snapshot: AsyncFunctionSnapshot, name: str) -> Snapshot:
        if name in helpers.FUNCTIONS:
            return await snapshot.resume(self._help(snapshot, name))
        dotted = name.removeprefix(f"{MODULE}.")
        if dotted == name:  # an undefined name that is called comes as a call
            return await snapshot.resume({"exc_type": "NameError", "message": f"name {name!r} is not defined"})
        return await self._host_call(snapshot, dotted)

    async def _host_call(self, snapshot: AsyncFunctionSnapshot, name: str) -> Snapshot:
        if name not in self.names:
            return await snapshot.resume(self._refusal(not_granted(name)))
        if not self.calls_allowed:
            message = f"call {name} inside a function, not while the module loads"
            raise Stopped(Fault("error", message, self._line(snapshot)))
        self._count(snapshot)
        return await self._answer(snapshot, self._outcome(name, snapshot))

    def _count(self, snapshot: AsyncFunctionSnapshot) -> None:
        self._calls += 1
        if self._calls > self.limits.host_calls:
            raise Stopped(Fault("limit", over_calls(self.limits), self._line(snapshot)))

    def _help(self, snapshot: AsyncFunctionSnapshot, name: str) -> Answer:
        """What a helper function answers: at once and without awaiting, in every tool."""
        try:
            answer = self._helping.answer(name, snapshot)
        except Stopped as stopped:
            raise Stopped(Fault(stopped.fault.kind, stopped.fault.message, self._line(snapshot))) from None
        if isinstance(answer, str):
            return self._refusal(answer)
        return answer

    async def _answer(self, snapshot: AsyncFunctionSnapshot, work: Coroutine[Any, Any, Answer]) -> Snapshot:
        """Wait for plain calls; hand `async def` tools a future, so that what they gather runs at once."""
        if self.together and snapshot.function_name not in BLOCKING_SLEEPS:
            self._pending[snapshot.call_id] = asyncio.ensure_future(work)
            return await snapshot.resume({"future": ...})
        return await snapshot.resume(await work)

    async def _outcome(self, name: str, snapshot: AsyncFunctionSnapshot) -> Answer:
        """What the granted function returns or raises, as the tool may see it."""
        what = f"the arguments of {name}"
        meter = Meter(what, self.limits.argument_bytes, self.limits.named("argument_bytes"))
        try:
            with self._worked:
                args, kwargs = to_json(list(snapshot.args), meter), to_json(snapshot.kwargs, meter)
        except Unfit as unfit:
            return {"exc_type": "TypeError", "message": str(unfit)}
        said = await self.asked.call(name, args, kwargs)
        if "error" not in said:
            return {"return_value": said["value"]}
        kind, message = said["error"]
        if kind == "PermissionError":
            return self._refusal(message)
        return {"exc_type": cast("Any", kind), "message": message}

    def _refusal(self, message: str) -> ExternalExceptionData:
        self.refusals.add(message)
        return {"exc_type": "PermissionError", "message": message}

    async def _nap(self, seconds: object) -> Answer:
        if not isinstance(seconds, int | float) or not seconds >= 0:
            return {"exc_type": "ValueError", "message": "sleep length must be a number of seconds, not negative"}
        self._slept += seconds
        if self._slept > self.limits.sleep_seconds:
            longest = f"{self.limits.sleep_seconds:g} s{self.limits.named('sleep_seconds')}"
            raise Stopped(Fault("limit", f"sleep: the tool sleeps for more than {longest}"))
        await self.asked.sleep(seconds)
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
    if name in SLEEPS:
        return NO_SLEEP
    if name == "os.urandom":
        return NO_RANDOM
    return f"tools have no files, processes or environment: {name} is refused"
