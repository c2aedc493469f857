"""One run inside a keeper: a fresh session on the worker, fed to its end, its questions answered one by one."""

import asyncio
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic_monty import (
    AsyncFunctionSnapshot,
    AsyncFutureSnapshot,
    AsyncMonty,
    AsyncMontySession,
    AsyncNameLookupSnapshot,
    ExternalExceptionData,
    ExternalModule,
    ExternalReturnValue,
    ExternalSettledResult,
    MontyComplete,
    MontyCrashedError,
    MontyError,
)

from hitlchat.sandbox import helpers
from hitlchat.sandbox.faults import SOURCE, cut, fault_from, over_calls, over_cpu, over_memory
from hitlchat.sandbox.importable import MODULE, module, not_granted
from hitlchat.sandbox.limits import Limits, in_words
from hitlchat.sandbox.values import Meter, TooLarge, Unfit, check_plain, suspects, to_json
from hitlchat.sandbox.wire import Fault, Output, Questions, Stopped, Worked

logger = logging.getLogger(__name__)

Answer = ExternalReturnValue | ExternalExceptionData
Snapshot = AsyncFunctionSnapshot | AsyncNameLookupSnapshot | AsyncFutureSnapshot | MontyComplete

IMPORTS = ("import", "import_stubs")
SLEEPS = ("time.sleep", "asyncio.sleep", "system.sleep", "system.async_sleep")
BLOCKING_SLEEPS = ("time.sleep", "system.sleep")
NOT_GRANTED = {
    **dict.fromkeys(
        ("datetime.now", "date.today", "time.time"),
        f"the clock is not granted to this tool: switch on the capability 'now' and use: from {MODULE} import now",
    ),
    **dict.fromkeys(SLEEPS, "sleeping is not granted to this tool: switch on the capability 'sleep'"),
    "os.urandom": "chance is not granted to this tool: switch on the capability 'random', or give random a seed, as in"
    " random.seed(1)",
}
HELPER_RESULT_BYTES = 4 * 1024 * 1024
# What a tool may be told by name; what derives from one of these is told as that one.
TELLABLE = (TypeError, KeyError, IndexError, LookupError, OverflowError, ZeroDivisionError, AttributeError, ValueError)
ARGUMENTS, RESULT = "_hitl_arguments", "_hitl_result"
# Of the suspicious texts of a result so many are asked about at a time, in code of at most so many characters.
MOST_ASKED = 200
LONGEST_ASKED = 100_000
LOOK_SECONDS = 0.02
PAGE = resource.getpagesize()
CAN_WATCH = sys.platform.startswith("linux")


@dataclass
class Driver:
    """Drives one session. `calls_allowed` is false while the definitions are read, `together` true for `async def`."""

    source: str
    names: frozenset[str]
    powers: frozenset[str]
    offered: list[str]
    limits: Limits
    together: bool
    questions: Questions
    output: Output
    calls_allowed: bool = False
    refusals: set[str] = field(default_factory=set)
    _calls: int = 0
    _helper_calls: int = 0
    _slept: float = 0.0
    _pending: "dict[int, asyncio.Task[Answer]]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._worked = Worked(self.limits)

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
            tasks = list(self._pending.values())
            self._pending.clear()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return snapshot

    async def _step(self, snapshot: AsyncFunctionSnapshot | AsyncNameLookupSnapshot | AsyncFutureSnapshot) -> Snapshot:
        if isinstance(snapshot, AsyncNameLookupSnapshot):
            return await snapshot.resume()  # stays undefined
        if isinstance(snapshot, AsyncFutureSnapshot):
            tasks = {self._pending[call_id]: call_id for call_id in snapshot.pending_call_ids}
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            answers: dict[int, ExternalSettledResult] = {}
            for task in done:
                del self._pending[tasks[task]]
                answers[tasks[task]] = task.result()
            return await snapshot.resume(answers)
        name = str(snapshot.function_name)
        if not snapshot.is_os_function:
            return await self._called(snapshot, name)
        if name in IMPORTS:
            return await snapshot.resume_auto()
        if name in SLEEPS and "sleep" in self.powers:
            self._count(snapshot)
            return await self._answer(snapshot, self._nap(snapshot.args[0] if snapshot.args else 0))
        other = f"tools have no files, processes or environment: {name} is refused"
        return await snapshot.resume(self._refusal(NOT_GRANTED.get(name, other)))

    async def _called(self, snapshot: AsyncFunctionSnapshot, name: str) -> Snapshot:
        if name in helpers.FUNCTIONS:
            return await snapshot.resume(self._help(snapshot, name))
        dotted = name.removeprefix(f"{MODULE}.")
        if dotted == name:  # an undefined name that is called comes as a call
            return await snapshot.resume({"exc_type": "NameError", "message": f"name {name!r} is not defined"})
        if dotted not in self.names:
            return await snapshot.resume(self._refusal(not_granted(dotted)))
        if not self.calls_allowed:
            message = f"call {dotted} inside a function, not while the module loads"
            raise Stopped(Fault("error", message, self._line(snapshot)))
        self._count(snapshot)
        return await self._answer(snapshot, self._outcome(dotted, snapshot))

    def _count(self, snapshot: AsyncFunctionSnapshot) -> None:
        self._calls += 1
        if self._calls > self.limits.host_calls:
            raise Stopped(Fault("limit", over_calls(self.limits), self._line(snapshot)))

    def _help(self, snapshot: AsyncFunctionSnapshot, name: str) -> Answer:
        """Return the answer of a helper function: at once and without awaiting, in every tool."""
        self._helper_calls += 1
        if self._helper_calls > self.limits.helper_calls:
            most = f"{self.limits.helper_calls}{self.limits.named('helper_calls')}"
            raise Stopped(Fault("limit", f"helper calls: the tool makes more than {most}", self._line(snapshot)))
        if refused := helpers.refused(name, self.powers):
            return self._refusal(refused)
        try:
            with self._worked:
                return _helped(name, snapshot, self.limits)
        except Stopped as stopped:
            raise Stopped(replace(stopped.fault, line=self._line(snapshot))) from None

    async def _answer(self, snapshot: AsyncFunctionSnapshot, work: Coroutine[Any, Any, Answer]) -> Snapshot:
        """Wait for plain calls; hand `async def` tools a future, so that what they gather runs at once."""
        if self.together and snapshot.function_name not in BLOCKING_SLEEPS:
            self._pending[snapshot.call_id] = asyncio.ensure_future(work)
            return await snapshot.resume({"future": ...})
        return await snapshot.resume(await work)

    async def _outcome(self, name: str, snapshot: AsyncFunctionSnapshot) -> Answer:
        """Return the result or the error of the granted function, as the tool may see it."""
        what = f"the arguments of {name}"
        meter = Meter(what, self.limits.argument_bytes, self.limits.named("argument_bytes"))
        try:
            with self._worked:
                args, kwargs = to_json(list(snapshot.args), meter), to_json(snapshot.kwargs, meter)
        except Unfit as unfit:
            return {"exc_type": "TypeError", "message": str(unfit)}
        answer = await self.questions.call(name, args, kwargs)
        if "error" not in answer:
            return {"return_value": answer["value"]}
        kind, message = answer["error"]
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
        await self.questions.sleep(seconds)
        return {"return_value": None}

    def _line(self, snapshot: AsyncFunctionSnapshot) -> int | None:
        if snapshot.position.filename != SOURCE:
            return None
        return self.source.encode()[: snapshot.position.start].count(b"\n") + 1


@dataclass
class Watch:
    """The use of the worker `pid` in one run, as the kernel counts it. `fault` says why that ended, if it was ended.

    The interpreter's own clock also runs while other processes have the processor, and its own count of memory knows no
    copies that are made on the way out.
    """

    pid: int
    limits: Limits
    fault: Fault | None = None

    def __post_init__(self) -> None:
        self._cpu_before = self._cpu()
        used, data = self._memory()
        # Copies of values need some more, but never so much that it is twice the limit.
        self._most = max(used + self.limits.memory_bytes, self.limits.memory_bytes * 7 // 4)
        bound = data + self._most - used
        resource.prlimit(self.pid, resource.RLIMIT_DATA, (bound, resource.RLIM_INFINITY))

    async def keep_looking(self) -> None:
        with suppress(OSError):  # it has ended
            while self.fault is None:
                await asyncio.sleep(LOOK_SECONDS)
                self.look()

    def look(self) -> None:
        if self._cpu() - self._cpu_before > self.limits.cpu_seconds:
            self.fault = Fault("limit", over_cpu(self.limits))
        elif self._memory()[0] > self._most:
            self.fault = Fault("limit", over_memory(self.limits))
        if self.fault:
            os.kill(self.pid, signal.SIGKILL)

    def _cpu(self) -> float:
        # The clock of another process, as the C library's clock_getcpuclockid makes it.
        return time.clock_gettime((~self.pid << 3) | 2)

    def _memory(self) -> tuple[int, int]:
        """Return the bytes in RAM, and those that it may write to."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()
        return int(pages[1]) * PAGE, int(pages[5]) * PAGE


async def run_order(order: dict[str, Any], monty: AsyncMonty, questions: Questions) -> dict[str, Any]:
    """The report on one run, as JSON: `result`, `output` and `fault`."""
    driver = driver_for(order, questions)
    result, fault = None, None
    try:
        result = await _run(driver, monty, order["entry"], order["arguments"])
    except Stopped as stopped:
        fault = stopped.fault
    except MontyError as error:
        fault = fault_from(error, driver.limits, driver.offered, driver.refusals)
    return {"result": result, "output": driver.output.text, "fault": fault and asdict(fault)}


def driver_for(order: dict[str, Any], questions: Questions) -> Driver:
    limits = Limits(**order["limits"])
    return Driver(
        source=order["source"],
        names=frozenset(order["names"]),
        powers=frozenset(order["powers"]),
        offered=order["offered"],
        limits=limits,
        together=order["together"],
        questions=questions,
        output=Output(limits.output_bytes, limits.named("output_bytes")),
    )


async def _run(driver: Driver, monty: AsyncMonty, entry: str, arguments: Mapping[str, Any]) -> Any:
    async with AsyncExitStack() as stack:
        session = await lend(stack, monty, driver)
        clock = asyncio.timeout(driver.limits.wall_seconds)
        try:
            async with clock, _watching(session.worker_pid, driver.limits) as watch:
                try:
                    return await _call(driver, session, entry, arguments)
                except MontyCrashedError:
                    if watch is None or watch.fault is None:
                        raise
                    raise Stopped(watch.fault) from None
        except TimeoutError:
            if not clock.expired():
                raise
        longest = f"{driver.limits.wall_seconds:g} s{driver.limits.named('wall_seconds')}"
        raise Stopped(Fault("limit", f"time: the tool takes longer than {longest}"))


@asynccontextmanager
async def _watching(pid: int | None, limits: Limits) -> AsyncIterator[Watch | None]:
    """Watch the worker while the block runs; None where that cannot be done."""
    if pid is None or not CAN_WATCH:
        yield None
        return
    watch = Watch(pid, limits)
    task = asyncio.create_task(watch.keep_looking())
    try:
        yield watch
    finally:
        task.cancel()


async def lend(stack: AsyncExitStack, monty: AsyncMonty, driver: Driver, stubs: str | None = None) -> AsyncMontySession:
    """A fresh session until the stack closes; with `stubs`, one that checks types against them."""
    with suppress(MontyCrashedError):  # it died while it was idle: no tool has run in it
        return await stack.enter_async_context(_checkout(monty, driver, stubs))
    return await stack.enter_async_context(_checkout(monty, driver, stubs))


def _checkout(monty: AsyncMonty, driver: Driver, stubs: str | None) -> AsyncMontySession:
    limits = driver.limits
    modules: dict[str, ExternalModule] = {MODULE: module(driver.names, stubs)}
    return monty.checkout(
        limits={
            # Its clock goes on while others have the processor.
            "max_feed_duration_secs": limits.wall_seconds if CAN_WATCH and stubs is None else limits.cpu_seconds,
            "max_memory": limits.memory_bytes,
            "max_recursion_depth": limits.recursion,
            "max_suspensions": limits.suspensions,
            "max_total_sleep_secs": limits.sleep_seconds,
        },
        # Clock and chance are the interpreter's own once granted; sleeping stays the driver's, for its limits.
        os_policy={
            "datetime": "system" if "now" in driver.powers else "call_host",
            "random_start": "system" if "random" in driver.powers else "call_host",
            "sleep": "call_host",
        },
        external_modules=modules | helpers.modules(driver.powers if stubs is not None else None),
        type_check=stubs is not None,
        type_check_format="json",
    )


async def _call(driver: Driver, session: AsyncMontySession, entry: str, arguments: Mapping[str, Any]) -> Any:
    await driver.feed(session, driver.source)
    driver.calls_allowed = True
    call = f"{RESULT} = {'await ' * driver.together}{entry}(**{ARGUMENTS})\n{RESULT}"
    raw = (await driver.feed(session, call, {ARGUMENTS: dict(arguments)})).output
    try:
        limit = driver.limits.result_bytes
        result = to_json(raw, Meter("the result", limit, driver.limits.named("result_bytes")))
    except TooLarge as large:
        raise Stopped(Fault("limit", str(large))) from None
    except Unfit as unfit:
        raise Stopped(Fault("error", str(unfit))) from None
    # A text in the result may be only how the interpreter prints something that is no text.
    for paths in _batches(suspects(raw)):
        tests = ", ".join(f"isinstance({RESULT}{path}, str)" for path in paths)
        answers = (await driver.feed(session, f"[{tests}]")).output
        for path, is_text in zip(paths, answers, strict=True):
            if is_text is not True:
                where = f"the result at {cut(path)}" if path else "the result"
                raise Stopped(Fault("error", f"{where}: JSON cannot hold this value"))
    return result


def _batches(paths: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for path in paths:
        if batch and (len(batch) == MOST_ASKED or sum(map(len, batch)) + len(path) > LONGEST_ASKED):
            yield batch
            batch = []
        batch.append(path)
    if batch:
        yield batch


def _helped(name: str, snapshot: AsyncFunctionSnapshot, limits: Limits) -> Answer:
    what = f"the arguments of {name}"
    meter = Meter(what, limits.argument_bytes, limits.named("argument_bytes"))
    try:
        check_plain(snapshot.args, meter)
        check_plain(snapshot.kwargs, meter)
    except Unfit as unfit:
        return _error(ValueError if isinstance(unfit, TooLarge) else TypeError, str(unfit))
    try:
        value = helpers.FUNCTIONS[name](*snapshot.args, **snapshot.kwargs)
        check_plain(value, Meter(f"the result of {name}", HELPER_RESULT_BYTES))
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
