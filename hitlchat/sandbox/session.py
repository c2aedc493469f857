"""One run inside a keeper: a fresh session on the worker, the definitions, the call, the result. Used in a keeper."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from typing import Any

from pydantic_monty import (
    AsyncMonty,
    AsyncMontySession,
    ExternalModule,
    MontyCrashedError,
    MontyError,
    OSPolicy,
    ResourceLimits,
)

from hitlchat.sandbox import helpers
from hitlchat.sandbox.asked import Asked
from hitlchat.sandbox.driver import Driver
from hitlchat.sandbox.faults import cut, fault_from
from hitlchat.sandbox.grants import MODULE, module
from hitlchat.sandbox.limits import Limits
from hitlchat.sandbox.report import Fault, Output, Stopped
from hitlchat.sandbox.values import Meter, TooLarge, Unfit, suspects, to_json
from hitlchat.sandbox.watching import CAN_WATCH, Watch, watching

logger = logging.getLogger(__name__)

ARGUMENTS, RESULT = "_hitl_arguments", "_hitl_result"
# Of the suspicious texts of a result so many are asked about at a time, in code of at most so many characters.
MOST_ASKED = 200
LONGEST_ASKED = 100_000


async def run_order(order: dict[str, Any], monty: AsyncMonty, asked: Asked) -> dict[str, Any]:
    """The report on one run, as JSON: `result`, `output` and `fault`."""
    driver = driver_for(order, asked)
    result, fault = None, None
    try:
        result = await _run(driver, monty, order["entry"], order["arguments"])
    except Stopped as stopped:
        fault = stopped.fault
    except MontyError as error:
        fault = fault_from(error, driver.limits, driver.known, driver.refusals)
    return {"result": result, "output": driver.output.text, "fault": fault and asdict(fault)}


def driver_for(order: dict[str, Any], asked: Asked) -> Driver:
    limits = Limits(**order["limits"])
    return Driver(
        source=order["source"],
        names=frozenset(order["names"]),
        powers=frozenset(order["powers"]),
        known=order["known"],
        limits=limits,
        together=order["together"],
        asked=asked,
        output=Output(limits.output_bytes, limits.named("output_bytes")),
    )


async def _run(driver: Driver, monty: AsyncMonty, entry: str, arguments: Mapping[str, Any]) -> Any:
    async with AsyncExitStack() as stack:
        session = await lend(stack, monty, driver)
        clock = asyncio.timeout(driver.limits.wall_seconds)
        try:
            async with clock, watching(session.worker_pid, driver.limits) as watch:
                return await _watched(watch, _call(driver, session, entry, arguments))
        except TimeoutError:
            if not clock.expired():
                raise
        longest = f"{driver.limits.wall_seconds:g} s{driver.limits.named('wall_seconds')}"
        raise Stopped(Fault("limit", f"time: the tool takes longer than {longest}"))


async def _watched(watch: Watch | None, work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except MontyCrashedError:
        if watch is None or watch.fault is None:
            raise
        raise Stopped(watch.fault) from None


async def lend(stack: AsyncExitStack, monty: AsyncMonty, driver: Driver, stubs: str | None = None) -> AsyncMontySession:
    """A fresh session until the stack closes; with `stubs`, one that checks types against them."""
    with suppress(MontyCrashedError):  # it died while it was idle: no tool has run in it
        return await stack.enter_async_context(_checkout(monty, driver, stubs))
    return await stack.enter_async_context(_checkout(monty, driver, stubs))


def _checkout(monty: AsyncMonty, driver: Driver, stubs: str | None) -> AsyncMontySession:
    modules: dict[str, ExternalModule] = {MODULE: module(driver.names, stubs)}
    return monty.checkout(
        limits=_resource_limits(driver.limits, is_watched=CAN_WATCH and stubs is None),
        os_policy=_os_policy(driver.powers),
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
        raise Stopped(Fault("limit", str(large), function=entry)) from None
    except Unfit as unfit:
        raise Stopped(Fault("error", str(unfit), function=entry)) from None
    await _refuse_printed_forms(driver, session, raw, entry)
    return result


async def _refuse_printed_forms(driver: Driver, session: AsyncMontySession, raw: object, entry: str) -> None:
    """End the run if a text in the result is only how the interpreter prints something that is no text."""
    for paths in _batches(suspects(raw)):
        asked = ", ".join(f"isinstance({RESULT}{path}, str)" for path in paths)
        answers = (await driver.feed(session, f"[{asked}]")).output
        for path, is_text in zip(paths, answers, strict=True):
            if is_text is not True:
                where = f"the result at {cut(path)}" if path else "the result"
                raise Stopped(Fault("error", f"{where}: JSON cannot hold this value", function=entry))


def _batches(paths: Iterator[str]) -> Iterator[list[str]]:
    """All of them, a few at a time."""
    batch: list[str] = []
    for path in paths:
        if batch and (len(batch) == MOST_ASKED or sum(map(len, batch)) + len(path) > LONGEST_ASKED):
            yield batch
            batch = []
        batch.append(path)
    if batch:
        yield batch


def _resource_limits(limits: Limits, *, is_watched: bool) -> ResourceLimits:
    return {
        # Its clock goes on while others have the processor.
        "max_feed_duration_secs": limits.wall_seconds if is_watched else limits.cpu_seconds,
        "max_memory": limits.memory_bytes,
        "max_recursion_depth": limits.recursion,
        "max_suspensions": limits.suspensions,
        "max_total_sleep_secs": limits.sleep_seconds,
    }


def _os_policy(powers: frozenset[str]) -> OSPolicy:
    """Clock and chance are the interpreter's own once granted; sleeping stays the driver's, for its limits."""
    return {
        "datetime": "system" if "now" in powers else "call_host",
        "random_start": "system" if "random" in powers else "call_host",
        "sleep": "call_host",
    }
