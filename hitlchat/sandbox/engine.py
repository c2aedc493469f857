"""Run one tool: lend it a keeper, say what to run, answer what it asks, take its report."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hitlchat.sandbox.grants import HostFunction
from hitlchat.sandbox.hosting import Hosting
from hitlchat.sandbox.keepers import Keeper, lent
from hitlchat.sandbox.limits import Limits, in_words
from hitlchat.sandbox.values import Meter, TooLarge, Unfit, check_inwards
from hitlchat.sandbox.wire import Closed, Fault, Report, Stopped

logger = logging.getLogger(__name__)

# The keeper ends a run itself; this much later it counts as stuck.
BACKSTOP_SECONDS = 5.0


async def run(
    source: str,
    arguments: Mapping[str, Any],
    *,
    entry: str = "run",
    grants: Mapping[str, HostFunction] | None = None,
    powers: Collection[str] = (),
    known: Collection[str] = (),
    limits: Limits | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Report:
    """Call `entry(**arguments)` as `source` defines it, and report; only cancelling raises.

    `grants` maps dotted names below `hitl` to async functions, `known` names all that exist in the product. `powers`
    are what the interpreter itself may do: `now` (its clock), `random` (chance) and `sleep`.
    """
    started = time.perf_counter()
    together = is_async(source, entry)
    limits = limits or Limits()
    grants = grants or {}
    order = {"entry": entry, "together": together, "arguments": dict(arguments)}
    order |= described(source, grants, powers, {*known, *grants}, limits)
    result, output, fault = None, "", None
    try:
        check_size(source, limits)
        _check_arguments(arguments, limits)
        said = await ordered({"do": "run", **order}, limits.wall_seconds, Host(grants, sleep))
        result, output, fault = said["result"], said["output"], said["fault"] and Fault(**said["fault"])
    except Stopped as stopped:
        fault = stopped.fault
    except Exception:
        logger.exception("the sandbox failed")
        fault = Fault("crash", "the sandbox failed; the log says how")
    return Report(result, output, fault, (time.perf_counter() - started) * 1000)


@dataclass(frozen=True)
class Host:
    """The server's part in one run."""

    grants: Mapping[str, HostFunction]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class _Vanished(Stopped):
    """The keeper ended before it had begun: nothing of the order was done."""


async def ordered(
    order: dict[str, Any],
    seconds: float,
    host: Host | None = None,
) -> dict[str, Any]:
    """Return what a keeper reports on `order`. Stopped: none was to be had, or it ended or hung and has been killed."""
    host = host or Host({})
    try:
        return await _once(order, seconds, host)
    except _Vanished:
        return await _once(order, seconds, host)


async def _once(order: dict[str, Any], seconds: float, host: Host) -> dict[str, Any]:
    async with lent() as keeper:
        hosting = Hosting(keeper.channel, host.grants, host.sleep)
        try:
            async with asyncio.timeout(seconds + BACKSTOP_SECONDS):
                return await _conversation(keeper, order, hosting)
        except TimeoutError:
            logger.warning("a keeper of the sandbox did not answer in time and is killed")
            raise Stopped(Fault("limit", f"time: the tool takes longer than {seconds:g} s")) from None
        finally:
            await hosting.end()


async def _conversation(keeper: Keeper, order: dict[str, Any], hosting: Hosting) -> dict[str, Any]:
    has_begun = False
    try:
        await keeper.channel.send(order)
        while "report" not in (message := await keeper.channel.receive()):
            if "begun" in message:
                has_begun = True
            else:
                hosting.serve(message)
    except Closed:
        raise (Stopped if has_begun else _Vanished)(keeper.epitaph()) from None
    report: dict[str, Any] = message["report"]
    return report


def described(
    source: str, names: Collection[str], powers: Collection[str], known: Collection[str], limits: Limits
) -> dict[str, Any]:
    """The part of an order that runs and checks have in common."""
    return {
        "source": source,
        "names": sorted(names),
        "powers": sorted(powers),
        "known": sorted(known),
        "limits": limits.as_json(),
    }


def is_async(source: str, entry: str) -> bool:
    """Return whether the tool awaits its host calls. By its text: nobody parses untrusted code in this process."""
    if not entry.isidentifier():
        raise ValueError(f"{entry!r} is not a function name")
    return re.search(rf"^async[ \t]+def[ \t]+{entry}\b", source, re.MULTILINE) is not None


def check_size(source: str, limits: Limits) -> None:
    """Stopped: the source is too large, or no text that can be sent."""
    try:
        size = len(source.encode())
    except UnicodeEncodeError:
        raise Stopped(Fault("syntax", "the code contains half a character (a lone surrogate)")) from None
    if size > limits.source_bytes:
        most = in_words(limits.source_bytes) + limits.named("source_bytes")
        raise Stopped(Fault("limit", f"source: the code is larger than the limit of {most}"))


def _check_arguments(arguments: Mapping[str, Any], limits: Limits) -> None:
    meter = Meter("the arguments", limits.argument_bytes, limits.named("argument_bytes"))
    try:
        check_inwards(dict(arguments), meter)
    except TooLarge as large:
        raise Stopped(Fault("limit", str(large))) from None
    except Unfit as unfit:
        raise Stopped(Fault("error", str(unfit))) from None
