"""Forcing things to happen at once, and to fail at a chosen statement: through Django's own hook around SQL."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

from django.db import OperationalError, connection, connections

from hitlchat.base.database import durable
from tests.waiting import until

SECONDS = 40
# PostgreSQL's pool holds 20 connections, and everyone at a meeting has one.
MEETING = 12

Work = Callable[[], Any]


def together(*works: Work, meet_at_first_write: bool = False, seconds: float = SECONDS) -> list[Any]:
    """What each of `works` returned or raised, started at the same moment in a thread each.

    With `meet_at_first_write`, each has read what it wants to read before any of them writes.
    `seconds`: how long each may take.
    """
    barrier = Barrier(len(works), timeout=seconds)

    def one(work: Work) -> Any:
        barrier.wait()
        try:
            if not meet_at_first_write:
                return work()
            with connection.execute_wrapper(_Meeting(barrier)):
                return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        futures = [pool.submit(one, work) for work in works]
        return [future.exception(seconds) or future.result() for future in futures]


def one_behind_the_other(first: Work, second: Work) -> tuple[Any, Any]:
    """What `first` returned, and what `second` did or raised, which began before `first` was committed and waited for
    that. On PostgreSQL: where there is one writer at a time, there is nothing to see.
    """
    ends: list[Any] = []
    with ThreadPoolExecutor(1) as pool:
        with durable():
            begun = first()
            other = pool.submit(lambda: ends.extend(together(second)))
            until(lambda: other.done() or somebody_waits(), "the second waits for the first, or is over")
            assert not other.done(), "the second did not wait for the first"
        other.result(SECONDS)
    return begun, ends[0]


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


class _Meeting:
    """Waits for the others before the first statement that writes or locks, once."""

    def __init__(self, barrier: Barrier) -> None:
        self._barrier = barrier
        self._met = False

    def __call__(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        # A lock as well: the others could not come to their first write before this one is done.
        if not self._met and (sql.startswith(("BEGIN", "INSERT", "UPDATE")) or " UPDATE OF " in sql):
            self._met = True
            self._barrier.wait()
        return execute(sql, *rest)


@contextmanager
def database_fails_at(start: str) -> Iterator[None]:
    """Statements that begin with `start` fail, as they do when the database goes away just then."""

    def fail(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith(start):
            raise OperationalError("the database went away")
        return execute(sql, *rest)

    with connection.execute_wrapper(fail):
        yield


@contextmanager
def meanwhile(work: Work) -> Iterator[None]:
    """Between what is read within this block and its first write, another process gets `work` done."""
    waiting = [work]

    def interrupt(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if waiting and sql.startswith(("BEGIN", "INSERT", "UPDATE")):
            (end,) = together(waiting.pop())
            assert not isinstance(end, BaseException), end
        return execute(sql, *rest)

    with connection.execute_wrapper(interrupt):
        yield
    assert not waiting, "nothing was written"
