"""The parts of a bench, each measured in a process of its own: it meets nothing that another one has left behind."""

import os
import signal
import sys
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final

from bench import figures, sizes
from bench.home import home
from tests import fork_server
from tests.services import postgres_url, redis_url

# Those with most data last.
PARTS: Final = {
    "sandbox": "An authored tool, next to its bare sandbox run",
    "agent": "A whole gated turn through the agent loop",
    "web": "The round trip of a page, at protocol level and in a browser",
    "pages": "What the requests of a page cost the server",
    "tokens": "Streamed text",
    "chat": "The chat as a person feels it",
    "load": "Many people who speak at once",
    "full": "A full house: many pages, many calls that wait, many people",
    "processes": "Many people at once, on PostgreSQL and Redis, in several processes",
    "memory": "Memory of the server process",
    "upstreams": "A call of an upstream server's tool, next to the same call by the bare SDK",
    "mcp": "/mcp: calls and lists of an outside client, next to the bare SDK",
    "policies": "What a verdict of each rule costs",
    "gate": "The gate: submit, ask, decide, claim, perform, on record",
    "insights": "The page of insights, with very many calls on record",
    "replay": "`policy replay` over a hundred thousand recorded calls",
    "record": "The record: sealing, verifying, exporting",
    "metrics": "A look at the numbers, with very many calls on record",
    "deciding": "One answer, with few and with very many questions open",
    "history": "The history of a hundred thousand calls",
    "inbox": "The inbox, with few and with very many calls waiting",
}

# On PostgreSQL and Redis, where they are found, and not where everything else is.
ON_SERVERS: Final = {"processes"}

# Each part is a fork of a process that has imported what other people wrote, and nothing of ours.
FORKS: Final = get_context("forkserver")
FORKS.set_forkserver_preload(["bench.home", *fork_server.IMPORTED])


def alone(name: str, *, small: bool) -> tuple[int, int] | None:
    """How many goals of a part are met, and how many it has; None if it failed, which it has said."""
    told, into = FORKS.Pipe(duplex=False)
    part = FORKS.Process(target=_measure, args=(name, small, into))
    part.start()
    into.close()
    try:
        found: tuple[int, int] = told.recv()
    except EOFError:
        return None
    except SystemExit:
        part.terminate()
        raise
    finally:
        part.join()
    return found


def _measure(name: str, small: bool, into: Connection) -> None:
    end_well()
    sizes.are_small = small
    if name in ON_SERVERS:
        database, channel = postgres_url(), redis_url()
        if not (database and channel):
            print(f"{name}: PostgreSQL and Redis are not both here. Set TEST_DATABASE_URL and TEST_REDIS_URL.\n")
            into.send((0, 0))
            return
        os.environ |= {"DATABASE_URL": database, "REDIS_URL": channel}
    with home():
        # After Django is set up.
        part = import_module(f"bench.{name}")
        found = list(figures.show(f"{name}: {PARTS[name]}", part.measure()))
    goals = [one for one in found if one.goal is not None]
    into.send((sum(one.verdict == "met" for one in goals), len(goals)))


def end_well() -> None:
    """Ended from outside, it still takes its processes and its data along."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
