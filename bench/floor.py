"""The least that each promise can cost: written by hand, on the same database, without Django's models."""

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from django.db import connection

from bench import sizes
from bench.home import ARGUMENTS
from bench.measure import Stopwatch, median

ROUNDS, TIMES = sizes.of((5, 100), (1, 5))

TABLES = (
    "CREATE TABLE IF NOT EXISTS floor_call (id VARCHAR(36) PRIMARY KEY, status VARCHAR(16), data TEXT, result TEXT)",
    "CREATE TABLE IF NOT EXISTS floor_event (id VARCHAR(36), name VARCHAR(40), data TEXT)",
)


class Floor:
    """Works on the driver's own connection, with the settings that the product has."""

    def __init__(self) -> None:
        connection.ensure_connection()
        self._raw: Any = connection.connection
        self._begin = "BEGIN IMMEDIATE" if connection.vendor == "sqlite" else "BEGIN"
        for table in TABLES:
            self._raw.execute(table)

    def commit(self) -> None:
        """One row, durable."""
        self._do("INSERT INTO floor_event VALUES (?, ?, ?)", str(uuid4()), "call.waiting", "{}")

    def cycle(self) -> None:
        """Ask, decide and claim at once with compare-and-set, run: two commits."""
        call = str(uuid4())
        self._do(self._begin)
        self._do("INSERT INTO floor_call VALUES (?, ?, ?, NULL)", call, "waiting", json.dumps(ARGUMENTS))
        self._do("INSERT INTO floor_event VALUES (?, ?, ?)", call, "call.waiting", json.dumps(ARGUMENTS))
        self._do("COMMIT")
        self._do(self._begin)
        set_to = "UPDATE floor_call SET status = ?, result = ? WHERE id = ? AND status = ?"
        assert self._do(set_to, "executing", "{}", call, "waiting").rowcount == 1
        self._do("INSERT INTO floor_event VALUES (?, ?, ?)", call, "call.approved", json.dumps({"by": "bob"}))
        self._do("COMMIT")

    def _do(self, statement: str, *values: str) -> Any:
        return self._raw.execute(statement if connection.vendor == "sqlite" else statement.replace("?", "%s"), values)


def timed(work: Callable[[], object]) -> Stopwatch:
    """Milliseconds and bytes of one `work`: the median of several rounds."""
    rounds = []
    for _ in range(ROUNDS):
        with Stopwatch() as watch:
            for _ in range(TIMES):
                work()
        rounds.append(watch)
    return Stopwatch(
        cpu=median(one.cpu for one in rounds) * 1000 / TIMES,
        wall=median(one.wall for one in rounds) * 1000 / TIMES,
        written=int(median(one.written for one in rounds) / TIMES),
    )
