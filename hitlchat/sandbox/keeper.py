"""The program of a keeper: it takes one order after the other, and drives its worker through each.

The server never reads a tool's values itself: they become plain JSON here. What a value can do to this process ends
with this process.
"""

import asyncio
import logging
import os
import resource
import signal
import socket
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from pydantic_monty import AsyncMonty

from hitlchat.sandbox.definitions import check_order
from hitlchat.sandbox.helping import Asked
from hitlchat.sandbox.session import run_order
from hitlchat.sandbox.wire import Channel, Closed

# Kills a worker that stops answering; above every limit that the interpreter keeps itself.
TURN_SECONDS = 75.0
CHECKOUT_SECONDS = 5.0
GRACE_SECONDS = 0.5
RUNS_PER_WORKER = 200
ADDRESS_SPACE = 4 << 30
# On top of what the limits of the run let this process compute for the tool.
SPARE_CPU_SECONDS = 1.5

ORDERS = {"run": run_order, "check": check_order}


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
    asked = Asked(channel)
    async with asyncio.TaskGroup() as group:
        while True:
            message = await channel.receive()
            if "answer" in message:
                asked.answered(message)
            else:
                asked = Asked(channel)
                group.create_task(_work(channel, message, ORDERS[message["do"]](message, monty, asked)))


async def _work(channel: Channel, order: dict[str, Any], work: Coroutine[Any, Any, dict[str, Any]]) -> None:
    # the default action ends the process even where no Python code gets its turn
    signal.setitimer(signal.ITIMER_PROF, 2 * order["limits"]["cpu_seconds"] + SPARE_CPU_SECONDS)
    with suppress(Closed):
        await channel.send({"begun": True})
        report = await work
        signal.setitimer(signal.ITIMER_PROF, 0)
        await channel.send({"report": report})
