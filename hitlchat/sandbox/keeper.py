"""The program of a keeper: it takes one order after the other, to run or to check, and drives its worker through it.

The server never reads a tool's values itself: they become plain JSON here. What a value can do to this process ends
with this process.
"""

import asyncio
import json
import logging
import os
import resource
import signal
import socket
from collections.abc import Collection, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from typing import Any

from pydantic_monty import AsyncMonty, AsyncMontySession, MontyError, MontyTypingError

from hitlchat.sandbox.faults import advised, column_of, fault_from
from hitlchat.sandbox.importable import MODULE, is_offered, missing_name, not_granted
from hitlchat.sandbox.session import Driver, driver_for, lend, run_order
from hitlchat.sandbox.wire import Channel, Closed, Problem, Questions, Stopped

# Kills a worker that stops answering; above every limit that the interpreter keeps itself.
TURN_SECONDS = 75.0
CHECKOUT_SECONDS = 5.0
GRACE_SECONDS = 0.5
RUNS_PER_WORKER = 200
ADDRESS_SPACE = 4 << 30
# On top of what the limits of the run let this process compute for the tool.
SPARE_CPU_SECONDS = 1.5

SYNTAX = "invalid-syntax"


def main(descriptor: int, launcher: str, mark: str) -> None:
    """Serve the connection `descriptor` until the server closes it."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # however the server was started: this one must be able to end us
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    asyncio.run(_serve(socket.socket(fileno=descriptor), launcher, mark))


async def _serve(connection: socket.socket, launcher: str, mark: str) -> None:
    monty = AsyncMonty(
        binary_path=launcher,
        min_processes=1,
        max_processes=1,
        checkout_timeout=CHECKOUT_SECONDS,
        request_timeout=TURN_SECONDS,
        max_checkouts_per_worker=RUNS_PER_WORKER,
        feed_duration_limit_grace=GRACE_SECONDS,
        turn_duration_limit_grace=GRACE_SECONDS,
    )
    await monty.__aenter__()
    connection.sendall(b"+")
    channel = Channel(connection, mark)
    try:
        await _orders(channel, monty)
    except* Closed:
        pass
    # a worker in the middle of a run may outlive its pipes, so the whole group ends, this process with it
    os.killpg(0, signal.SIGKILL)


async def _orders(channel: Channel, monty: AsyncMonty) -> None:
    """Carry out one run after the other.

    An error of ours ends the process with its traceback: the server learns of it.
    """
    questions = Questions(channel)
    async with asyncio.TaskGroup() as group:
        while True:
            message = await channel.receive()
            if "answer" in message:
                questions.answer(message)
            else:
                questions = Questions(channel)
                group.create_task(_work(channel, message, ORDERS[message["do"]](message, monty, questions)))


async def _work(channel: Channel, order: dict[str, Any], work: Coroutine[Any, Any, dict[str, Any]]) -> None:
    # the default action ends the process even where no Python code gets its turn
    signal.setitimer(signal.ITIMER_PROF, 2 * order["limits"]["cpu_seconds"] + SPARE_CPU_SECONDS)
    with suppress(Closed):
        await channel.send({"begun": True})
        report = await work
        signal.setitimer(signal.ITIMER_PROF, 0)
        await channel.send({"report": report})


async def check_order(order: dict[str, Any], monty: AsyncMonty, questions: Questions) -> dict[str, Any]:
    driver = driver_for(order, questions)
    try:
        async with AsyncExitStack() as stack:
            session = await lend(stack, monty, driver, order["stubs"])
            async with asyncio.timeout(order["seconds"]):
                found = await _found(driver, session, order["entry"])
    except Stopped as stopped:
        found = [Problem(stopped.fault.line, None, stopped.fault.message)]
    except TimeoutError:
        found = [Problem(None, None, f"the check took longer than {order['seconds']:g} s")]
    return {"problems": [asdict(problem) for problem in found]}


async def _found(driver: Driver, session: AsyncMontySession, entry: str) -> list[Problem]:
    """The type checker knows types and modules, not every gap of the interpreter: so the definitions are fed, too."""
    found: list[Problem] = []
    try:
        await driver.feed(session, driver.source, type_check=True)
    except MontyTypingError as error:
        diagnostics = json.loads(error.display())
        found = [_diagnosed(each, driver.offered) for each in diagnostics if each["severity"] == "error"]
        if any(each["code"] == SYNTAX for each in diagnostics):
            return found
        try:
            await driver.feed(session, driver.source)
        except MontyError as gap:
            problem = _problem_from(gap, driver)
            found += [] if problem.line in {each.line for each in found} else [problem]
    except MontyError as error:
        return [_problem_from(error, driver)]
    if found:
        return found
    try:
        await driver.feed(session, entry)
    except MontyError:
        return [Problem(None, None, f"the code defines no function {entry}")]
    return []


def _diagnosed(diagnostic: dict[str, Any], offered: Collection[str]) -> Problem:
    place, message = diagnostic["location"], str(diagnostic["message"])
    # The type checker quotes with backticks.
    member = message.removeprefix(f"Module `{MODULE}` has no member `")
    name = member.rstrip("`") if member != message else missing_name(message)
    if name and is_offered(name, offered):
        message = not_granted(name)
    return Problem(place["row"], place["column"], advised(message))


def _problem_from(error: MontyError, driver: Driver) -> Problem:
    fault = fault_from(error, driver.limits, driver.offered, driver.refusals)
    return Problem(fault.line, column_of(error), fault.message)


ORDERS = {"run": run_order, "check": check_order}
