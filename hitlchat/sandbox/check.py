"""Check a tool before it is saved: size, types, and whether the interpreter takes its definitions."""

import asyncio
import json
import logging
from collections.abc import Collection
from contextlib import AsyncExitStack
from typing import Any

from pydantic_monty import AsyncMontySession, MontyError, MontyTypingError

from .driver import Driver
from .engine import check_size, is_async, jail_required, lend
from .faults import column_of, fault_from
from .grants import MODULE, is_known, missing_name, not_granted
from .limits import Limits
from .output import Output
from .report import Fault, Problem, Stopped
from .stubs import awaitable, names_in

logger = logging.getLogger(__name__)

WALL_SECONDS = 15.0
SYNTAX = "invalid-syntax"


async def check(
    source: str,
    *,
    stubs: str = "",
    known: Collection[str] = (),
    entry: str = "run",
    limits: Limits | None = None,
    require_jail: bool | None = None,
) -> list[Problem]:
    """What is wrong with `source`, for the editor; an empty list means fine.

    `stubs` declares the module `hitl` as this tool may use it, with plain `def` also for `async def` tools.
    """
    limits = limits or Limits()
    try:
        check_size(source, limits)
        together = is_async(source, entry)
        declared = awaitable(stubs) if together else stubs
        grants = dict.fromkeys(names_in(stubs), _no_call)
        driver = Driver(source, grants, known, limits, asyncio.sleep, together, Output(0))
        async with AsyncExitStack() as stack:
            session = await lend(stack, limits, grants, require_jail=jail_required(require_jail), stubs=declared)
            async with asyncio.timeout(WALL_SECONDS):
                return await _problems(driver, session, entry)
    except Stopped as stopped:
        return [_problem(stopped.fault)]
    except TimeoutError:
        return [Problem(None, None, f"the check took longer than {WALL_SECONDS:g} s")]
    except Exception:
        logger.exception("the check failed")
        return [Problem(None, None, "the check failed; the log says how")]


async def _no_call() -> None:
    raise AssertionError("a check calls nothing")


async def _problems(driver: Driver, session: AsyncMontySession, entry: str) -> list[Problem]:
    """The type checker knows types and modules, not every gap of the interpreter: so the definitions are fed, too."""
    found: list[Problem] = []
    try:
        await driver.feed(session, driver.source, type_check=True)
    except MontyTypingError as error:
        diagnostics = json.loads(error.display())
        found = [_diagnosed(each, driver.known) for each in diagnostics if each["severity"] == "error"]
        if any(each["code"] == SYNTAX for each in diagnostics):
            return found
        found += await _definitions(driver, session, found)
    except MontyError as error:
        return [_problem_from(error, driver)]
    return found or await _entry(driver, session, entry)


async def _definitions(driver: Driver, session: AsyncMontySession, found: list[Problem]) -> list[Problem]:
    try:
        await driver.feed(session, driver.source)
    except MontyError as error:
        problem = _problem_from(error, driver)
        return [] if problem.line in {each.line for each in found} else [problem]
    return []


async def _entry(driver: Driver, session: AsyncMontySession, entry: str) -> list[Problem]:
    try:
        await driver.feed(session, entry)
    except MontyError:
        return [Problem(None, None, f"the code defines no function {entry}")]
    return []


def _diagnosed(diagnostic: dict[str, Any], known: Collection[str]) -> Problem:
    place, message = diagnostic["location"], str(diagnostic["message"])
    name = _missing_member(message)
    if name and is_known(name, known):
        message = not_granted(name)
    return Problem(place["row"], place["column"], message)


def _missing_member(message: str) -> str | None:
    """The name below `hitl` in the type checker's words, which quote with backticks."""
    member = message.removeprefix(f"Module `{MODULE}` has no member `")
    return member.rstrip("`") if member != message else missing_name(message)


def _problem_from(error: MontyError, driver: Driver) -> Problem:
    fault = fault_from(error, driver.limits, driver.known, driver.refusals)
    return Problem(fault.line, column_of(error), fault.message)


def _problem(fault: Fault) -> Problem:
    return Problem(fault.line, None, fault.message)
