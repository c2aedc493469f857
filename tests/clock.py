"""Time as a test wants it: for this process and, on PostgreSQL, for the database, by whose clock leases end.

There is no way to set that clock, so tests put a function of their own before the database's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import time_machine
from django.db import connection
from django.utils import timezone

# Where a name is looked up: tables are made in the first, the clock is found in the second.
SEARCHED: Final = "public, clock, pg_catalog"
SHIFTED: Final = """
    CREATE SCHEMA IF NOT EXISTS clock;
    CREATE OR REPLACE FUNCTION clock.statement_timestamp() RETURNS timestamptz STABLE LANGUAGE sql
        AS 'SELECT pg_catalog.statement_timestamp() + interval ''%s microseconds''';
"""
RIGHT: Final = "DROP FUNCTION IF EXISTS clock.statement_timestamp()"


def make_movable() -> None:
    """Have each connection to the test database find the clock of the tests, once there is one."""
    if connection.vendor == "postgresql":
        name = connection.ops.quote_name(str(connection.settings_dict["NAME"]))
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} SET search_path = {SEARCHED}")
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]


class Clock:
    """Moves both clocks."""

    def __init__(self, traveller: time_machine.Traveller) -> None:
        self._traveller = traveller
        self._follow()

    def move_to(self, when: datetime | str) -> None:
        self._traveller.move_to(when)
        self._follow()

    def shift(self, seconds: float) -> None:
        self._traveller.shift(seconds)
        self._follow()

    def _follow(self) -> None:
        if connection.vendor == "postgresql":
            ahead = timezone.now() - datetime.fromtimestamp(time_machine.escape_hatch.time.time(), UTC)
            with connection.cursor() as cursor:
                cursor.execute(SHIFTED % (ahead // timedelta(microseconds=1)))


@contextmanager
def travel(when: datetime | str) -> Iterator[Clock]:
    """Stop the clock of this process at `when`; the database's goes on from there."""
    try:
        with time_machine.travel(when, tick=False) as traveller:
            yield Clock(traveller)
    finally:
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(RIGHT)
