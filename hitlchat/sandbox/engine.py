"""Run one tool: lend a worker, read the definitions, call the entry, take the result."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, suppress
from itertools import islice
from typing import Any

from django.conf import settings
from pydantic_monty import AsyncMonty, AsyncMontySession, MontyCrashedError, MontyError, OSPolicy, ResourceLimits

from .driver import Driver
from .faults import fault_from
from .grants import MODULE, HostFunction, module
from .limits import Limits, in_words
from .output import Output
from .pool import WORKERS, JailMissing, workers
from .report import Fault, Report, Stopped
from .values import Meter, TooLarge, Unfit, check_inwards, suspects, to_json

logger = logging.getLogger(__name__)

ARGUMENTS, RESULT = "_hitl_arguments", "_hitl_result"
# imports and look-ups of undefined names also suspend, so the interpreter's own count is only a backstop
SPARE_SUSPENSIONS = 500
SUSPECTS_ASKED = 200


async def run(
    source: str,
    arguments: Mapping[str, Any],
    *,
    entry: str = "run",
    grants: Mapping[str, HostFunction] | None = None,
    known: Collection[str] = (),
    limits: Limits | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    require_jail: bool | None = None,
) -> Report:
    """Call `entry(**arguments)` as `source` defines it, and report; only cancelling raises.

    `grants` maps dotted names below `hitl` to async functions, `known` names all that exist in the product.
    `require_jail` defaults to the setting TOOLS_REQUIRE_JAIL.
    """
    started = time.perf_counter()
    limits = limits or Limits()
    output = Output(limits.output_bytes)
    grants = grants or {}
    known = {*known, *grants}
    driver = Driver(source, grants, known, limits, sleep, is_async(source, entry), output)
    result: Any = None
    fault: Fault | None = None
    try:
        check_size(source, limits)
        _check_arguments(arguments, limits)
        result = await _run(driver, entry, arguments, jail_required(require_jail))
    except Stopped as stopped:
        fault = stopped.fault
    except MontyError as error:
        fault = fault_from(error, limits, known, driver.refusals)
    except Exception:
        logger.exception("the sandbox failed")
        fault = Fault("crash", "the sandbox failed; the log says how")
    return Report(result, output.text, fault, (time.perf_counter() - started) * 1000)


async def _run(driver: Driver, entry: str, arguments: Mapping[str, Any], require_jail: bool) -> Any:
    async with AsyncExitStack() as stack:
        session = await lend(stack, driver.limits, driver.grants, require_jail=require_jail)
        clock = asyncio.timeout(driver.limits.wall_seconds)
        try:
            async with clock:
                return await _call(driver, session, entry, arguments)
        except TimeoutError:
            if not clock.expired():
                raise
        raise Stopped(Fault("limit", f"time: the tool takes longer than {driver.limits.wall_seconds:g} s"))


async def lend(
    stack: AsyncExitStack,
    limits: Limits,
    names: Collection[str],
    *,
    require_jail: bool,
    stubs: str | None = None,
) -> AsyncMontySession:
    """A fresh session on a worker, until the stack closes. Stopped: none to be had."""
    try:
        pool = await workers(require_jail=require_jail)
        for _ in range(WORKERS):
            with suppress(MontyCrashedError):  # it died while it was idle: no tool has run in it
                return await stack.enter_async_context(_checkout(pool, limits, names, stubs))
        return await stack.enter_async_context(_checkout(pool, limits, names, stubs))
    except TimeoutError:
        raise Stopped(Fault("busy", "all sandbox workers are busy: try again in a moment")) from None
    except JailMissing as missing:
        raise Stopped(Fault("unavailable", str(missing))) from None
    except (RuntimeError, OSError, MontyError):
        logger.exception("the sandbox could not start")
        raise Stopped(Fault("unavailable", "the sandbox could not start; the log says why")) from None


def _checkout(pool: AsyncMonty, limits: Limits, names: Collection[str], stubs: str | None) -> AsyncMontySession:
    return pool.checkout(
        limits=_resource_limits(limits),
        os_policy=_os_policy(names),
        external_modules={MODULE: module(names, stubs)},
        type_check=stubs is not None,
        type_check_format="json",
    )


async def _call(driver: Driver, session: AsyncMontySession, entry: str, arguments: Mapping[str, Any]) -> Any:
    await driver.feed(session, driver.source)
    driver.calls_allowed = True
    call = f"{RESULT} = {'await ' * driver.together}{entry}(**{ARGUMENTS})\n{RESULT}"
    raw = (await driver.feed(session, call, {ARGUMENTS: dict(arguments)})).output
    try:
        result = to_json(raw, Meter("the result", driver.limits.result_bytes))
    except TooLarge as large:
        raise Stopped(Fault("limit", str(large), function=entry)) from None
    except Unfit as unfit:
        raise Stopped(Fault("error", str(unfit), function=entry)) from None
    await _refuse_printed_forms(driver, session, raw, entry)
    return result


async def _refuse_printed_forms(driver: Driver, session: AsyncMontySession, raw: object, entry: str) -> None:
    """End the run if a text in the result is only how the interpreter prints something that is no text."""
    paths = list(islice(suspects(raw), SUSPECTS_ASKED))
    if not paths:
        return
    asked = ", ".join(f"isinstance({RESULT}{path}, str)" for path in paths)
    answers = (await driver.feed(session, f"[{asked}]")).output
    for path, is_text in zip(paths, answers, strict=True):
        if is_text is not True:
            where = f"the result at {path}" if path else "the result"
            raise Stopped(Fault("error", f"{where}: JSON cannot hold this value", function=entry))


def is_async(source: str, entry: str) -> bool:
    """Whether the tool awaits its host calls. By its text: nobody parses untrusted code in this process."""
    if not entry.isidentifier():
        raise ValueError(f"{entry!r} is not a function name")
    return re.search(rf"^async[ \t]+def[ \t]+{entry}\b", source, re.MULTILINE) is not None


def jail_required(asked: bool | None) -> bool:
    return bool(settings.TOOLS_REQUIRE_JAIL) if asked is None else asked


def check_size(source: str, limits: Limits) -> None:
    try:
        size = len(source.encode())
    except UnicodeEncodeError:
        raise Stopped(Fault("syntax", "the code contains half a character (a lone surrogate)")) from None
    if size > limits.source_bytes:
        most = in_words(limits.source_bytes)
        raise Stopped(Fault("limit", f"source: the code is larger than the limit of {most}"))


def _check_arguments(arguments: Mapping[str, Any], limits: Limits) -> None:
    try:
        check_inwards(dict(arguments), Meter("the arguments", limits.argument_bytes))
    except TooLarge as large:
        raise Stopped(Fault("limit", str(large))) from None
    except Unfit as unfit:
        raise Stopped(Fault("error", str(unfit))) from None


def _resource_limits(limits: Limits) -> ResourceLimits:
    return {
        "max_feed_duration_secs": limits.cpu_seconds,
        "max_memory": limits.memory_bytes,
        "max_recursion_depth": limits.recursion,
        "max_suspensions": limits.host_calls + SPARE_SUSPENSIONS,
        "max_total_sleep_secs": limits.sleep_seconds,
    }


def _os_policy(names: Collection[str]) -> OSPolicy:
    """Clock and chance are capabilities; sleeping is a matter of limits, and the driver does it."""
    return {
        "datetime": "system" if "now" in names else "call_host",
        "random_start": "system" if "random" in names else "call_host",
        "sleep": "call_host",
    }
