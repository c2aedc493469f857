"""Run or check one tool: lend it a keeper, say what to do, answer what it asks of the host, take its report."""

import asyncio
import inspect
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hitlchat.sandbox.faults import warnings
from hitlchat.sandbox.importable import HostFunction, awaitable, names_in
from hitlchat.sandbox.limits import Limits, in_words
from hitlchat.sandbox.pool import Keeper, lent
from hitlchat.sandbox.values import Meter, TooLarge, Unfit, check_inwards
from hitlchat.sandbox.wire import Channel, Closed, Fault, Problem, Report, Stopped

logger = logging.getLogger(__name__)

# The keeper ends a run itself; this much later it counts as stuck.
BACKSTOP_SECONDS = 5.0
CHECK_SECONDS = 15.0
# The only types of error that reach a tool with their message; exactly these, not what derives from them.
TELLABLE = (ValueError, TypeError, KeyError, TimeoutError, PermissionError)
HOST_RESULT_BYTES = 9 * 1024 * 1024
# Up to this size a result is checked at once; what is larger must not keep the others of the loop waiting.
SMALL_BYTES = 16 * 1024
# A run may ask for any number of things at a time; this many of them are worked on and held in memory.
IN_HAND = 4

Answer = dict[str, Any]


async def run(
    source: str,
    arguments: Mapping[str, Any],
    *,
    entry: str = "run",
    grants: Mapping[str, HostFunction] | None = None,
    powers: Collection[str] = (),
    offered: Collection[str] = (),
    limits: Limits | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Report:
    """Call `entry(**arguments)` as `source` defines it, and report; only cancelling raises.

    `grants` maps dotted names below `hitl` to async functions, `offered` names all that exist in the product. `powers`
    are what the interpreter itself may do: `now` (its clock), `random` (chance) and `sleep`.
    """
    started = time.perf_counter()
    limits, grants = limits or Limits(), grants or {}
    order = {"do": "run", "entry": entry, "together": is_async(source, entry), "arguments": dict(arguments)}
    order |= described(source, grants, powers, {*offered, *grants}, limits)
    result, output, fault = None, "", None
    try:
        check_size(source, limits)
        check_arguments(arguments, limits)
        report = await ordered(order, limits.wall_seconds, grants, sleep)
        result, output, fault = report["result"], report["output"], report["fault"] and Fault(**report["fault"])
    except Stopped as stopped:
        fault = stopped.fault
    except Exception:
        logger.exception("the sandbox failed")
        fault = Fault("crash", "the sandbox failed; see the log")
    return Report(result, output, fault, (time.perf_counter() - started) * 1000)


async def check(
    source: str,
    *,
    stubs: str = "",
    powers: Collection[str] = (),
    offered: Collection[str] = (),
    entry: str = "run",
    limits: Limits | None = None,
    advise: bool = False,
) -> list[Problem]:
    """Return the problems of `source`, for the editor.

    `stubs` declares the module `hitl` as this tool may use it, with plain `def` also for `async def` tools. With
    `advise` the list ends with what runs but may surprise, as problems of severity "warning".
    """
    limits = limits or Limits()
    together = is_async(source, entry)
    order = {"do": "check", "entry": entry, "together": together, "seconds": CHECK_SECONDS}
    try:
        check_size(source, limits)
        order["stubs"] = awaitable(stubs) if together else stubs
        order |= described(source, names_in(stubs), powers, offered, limits)
        report = await ordered(order, CHECK_SECONDS, {})
        found = [Problem(**problem) for problem in report["problems"]]
    except Stopped as stopped:
        return [Problem(stopped.fault.line, None, stopped.fault.message)]
    except Exception:
        logger.exception("the check failed")
        return [Problem(None, None, "the check failed; see the log")]
    return [*found, *(warnings(source) if advise else [])]


@dataclass
class HostCalls:
    """Serves one run; what it still works on ends with it."""

    channel: Channel
    grants: Mapping[str, HostFunction]
    sleep: Callable[[float], Awaitable[None]]
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(IN_HAND))

    def serve(self, call: dict[str, Any]) -> None:
        task = asyncio.ensure_future(self._serve(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, call: dict[str, Any]) -> None:
        if "sleep" in call:
            await self.sleep(call["sleep"])
            await self._send(call, {"value": None})
            return
        async with self._room:
            await self._send(call, await self._outcome(call["name"], call["args"], call["kwargs"]))

    async def _send(self, call: dict[str, Any], answer: Answer) -> None:
        try:
            await self.channel.send({"answer": call["call"], **answer})
        except Closed:
            logger.warning("the answer to %r came too late: the keeper is gone", call.get("name", "sleep"))

    async def _outcome(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Answer:
        """Return the result or the error of the granted function, as the tool may see it."""
        function = self.grants[name]
        try:
            inspect.signature(function).bind(*args, **kwargs)
        except TypeError as error:
            return _error("TypeError", f"{name}(): {error}")
        try:
            value = await function(*args, **kwargs)
            await _check_answer(value, f"the result of {name}")
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            logger.warning("the host function %r was cancelled", name)
        except Unfit as unfit:
            logger.warning("the host function %r answered with what cannot cross: %s", name, unfit)
            return _error("ValueError", str(unfit))
        except Exception as error:
            if type(error) in TELLABLE:
                # str() of a KeyError would put quotes around its message
                return _error(
                    type(error).__name__,
                    error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error),
                )
            logger.exception("the host function %r failed", name)
        else:
            return {"value": value}
        return _error("RuntimeError", "the host function failed")


async def _check_answer(value: object, what: str) -> None:
    """Check that an answer may cross. Raises: Unfit"""
    try:
        check_inwards(value, Meter(what, SMALL_BYTES))
    except TooLarge:
        await asyncio.to_thread(check_inwards, value, Meter(what, HOST_RESULT_BYTES))


def _error(kind: str, message: str) -> Answer:
    return {"error": [kind, message]}


class _Vanished(Stopped):
    """The keeper ended before it had begun: nothing of the order was done."""


async def ordered(
    order: dict[str, Any],
    seconds: float,
    grants: Mapping[str, HostFunction],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> dict[str, Any]:
    """Return the report of a keeper on `order`. Stopped: there was none, or it ended, or hung and was killed."""
    try:
        return await _once(order, seconds, grants, sleep)
    except _Vanished:
        return await _once(order, seconds, grants, sleep)


async def _once(
    order: dict[str, Any],
    seconds: float,
    grants: Mapping[str, HostFunction],
    sleep: Callable[[float], Awaitable[None]],
) -> dict[str, Any]:
    async with lent() as keeper:
        host_calls = HostCalls(keeper.channel, grants, sleep)
        try:
            async with asyncio.timeout(seconds + BACKSTOP_SECONDS):
                return await _conversation(keeper, order, host_calls)
        except TimeoutError:
            logger.warning("a keeper of the sandbox did not answer in time and was killed")
            raise Stopped(Fault("limit", f"time: the tool takes longer than {seconds:g} s")) from None
        finally:
            await host_calls.end()


async def _conversation(keeper: Keeper, order: dict[str, Any], host_calls: HostCalls) -> dict[str, Any]:
    has_begun = False
    try:
        await keeper.channel.send(order)
        while "report" not in (message := await keeper.channel.receive()):
            if "begun" in message:
                has_begun = True
            else:
                host_calls.serve(message)
    except Closed:
        raise (Stopped if has_begun else _Vanished)(keeper.epitaph()) from None
    report: dict[str, Any] = message["report"]
    return report


def described(
    source: str, names: Collection[str], powers: Collection[str], offered: Collection[str], limits: Limits
) -> dict[str, Any]:
    """The part of an order that runs and checks have in common."""
    listed = {"names": sorted(names), "powers": sorted(powers), "offered": sorted(offered)}
    return {"source": source, "limits": asdict(limits), **listed}


def is_async(source: str, entry: str) -> bool:
    """Return whether the tool awaits its host calls. By its text: nobody parses untrusted code in this process."""
    if not entry.isidentifier():
        raise ValueError(f"{entry!r} is not a function name")
    return re.search(rf"^async[ \t]+def[ \t]+{entry}\b", source, re.MULTILINE) is not None


def check_size(source: str, limits: Limits) -> None:
    """Check that the source can be sent. Raises: Stopped, where it is too large or no valid text"""
    try:
        size = len(source.encode())
    except UnicodeEncodeError:
        raise Stopped(Fault("syntax", "the code contains half a character (a lone surrogate)")) from None
    if size > limits.source_bytes:
        most = in_words(limits.source_bytes) + limits.named("source_bytes")
        raise Stopped(Fault("limit", f"source: the code is larger than the limit of {most}"))


def check_arguments(arguments: Mapping[str, Any], limits: Limits) -> None:
    """Check that the arguments can be passed. Raises: Stopped"""
    meter = Meter("the arguments", limits.argument_bytes, limits.named("argument_bytes"))
    try:
        check_inwards(dict(arguments), meter)
    except TooLarge as large:
        raise Stopped(Fault("limit", str(large))) from None
    except Unfit as unfit:
        raise Stopped(Fault("arguments", str(unfit))) from None
