"""The check of a tool inside a keeper: types, and whether the interpreter takes the definitions. Used in a keeper."""

import asyncio
import json
from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Any

from pydantic_monty import AsyncMonty, AsyncMontySession, MontyError, MontyTypingError

from hitlchat.sandbox.faults import advised, column_of, fault_from
from hitlchat.sandbox.grants import MODULE, is_known, missing_name, not_granted
from hitlchat.sandbox.helping import Asked
from hitlchat.sandbox.session import Driver, driver_for, lend
from hitlchat.sandbox.wire import Fault, Problem, Stopped

SYNTAX = "invalid-syntax"


async def check_order(order: dict[str, Any], monty: AsyncMonty, asked: Asked) -> dict[str, Any]:
    """Return what is wrong, as JSON: a list of problems."""
    driver = driver_for(order, asked)
    try:
        async with AsyncExitStack() as stack:
            session = await lend(stack, monty, driver, order["stubs"])
            async with asyncio.timeout(order["seconds"]):
                found = await _problems(driver, session, order["entry"])
    except Stopped as stopped:
        found = [_problem(stopped.fault)]
    except TimeoutError:
        found = [Problem(None, None, f"the check took longer than {order['seconds']:g} s")]
    return {"problems": [asdict(problem) for problem in found]}


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
    return Problem(place["row"], place["column"], advised(message))


def _missing_member(message: str) -> str | None:
    """The name below `hitl` in the type checker's words, which quote with backticks."""
    member = message.removeprefix(f"Module `{MODULE}` has no member `")
    return member.rstrip("`") if member != message else missing_name(message)


def _problem_from(error: MontyError, driver: Driver) -> Problem:
    fault = fault_from(error, driver.limits, driver.known, driver.refusals)
    return Problem(fault.line, column_of(error), fault.message)


def _problem(fault: Fault) -> Problem:
    return Problem(fault.line, None, fault.message)
