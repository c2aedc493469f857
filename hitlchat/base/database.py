"""The database beyond its rows: the one way to it from asynchronous code, durable transactions, and its clock.

SQLite writes its log without waiting for the disk (`synchronous=NORMAL`), and PostgreSQL may be told to: a commit is
whole or gone after a power cut, and the last ones are gone. Nearly everything here bears that. What a person decided,
and that a tool is about to be entered, does not: these transactions are `durable`.
"""

import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial, update_wrapper
from typing import Final, ParamSpec, TypeVar

from channels.db import database_sync_to_async
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.db.models import Model, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

# In WAL mode FULL waits at each commit until the log is on the disk. It can't be changed inside a transaction.
SYNCED: Final = "PRAGMA synchronous=FULL"
CHEAP: Final = "PRAGMA synchronous=NORMAL"
# `local` waits for this server's disk, but for none of the standbys that may take over from it.
WAIT_FOR_DISK: Final = """
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
FULL: Final = "disk full"
READ_ONLY: Final = "read-only"
LOCKED: Final = "locked"
SENTENCES: Final = {
    FULL: gettext_noop("The server's disk is full, so nothing can be stored."),
    READ_ONLY: gettext_noop("The server's database is read-only, so nothing can be stored."),
    LOCKED: gettext_noop("Another program has locked the server's database. Try again in a moment."),
    "disk error": gettext_noop("The server's disk reports an error, so nothing can be stored."),
    "unreachable": gettext_noop("The server cannot reach its database. Try again in a moment."),
}
# By the beginning of SQLite's names for errors, and of PostgreSQL's codes.
_SIGNS: Final = {
    "SQLITE_FULL": FULL,
    "SQLITE_READONLY": READ_ONLY,
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_IOERR": "disk error",
    "SQLITE_CANTOPEN": "unreachable",
    "53100": FULL,
    "25006": READ_ONLY,
    "55P03": LOCKED,
    "58030": "disk error",
    "57P0": "unreachable",
    "08": "unreachable",
}
# One at a time: what is drawn later has read later.
_PAGES: Final = ThreadPoolExecutor(1, thread_name_prefix="pages")

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Model)


class _Open(threading.local):
    """Marks a thread that is inside of a durable transaction."""

    durable = False


_open = _Open()


@contextmanager
def unique(problem: Exception | Callable[[], Exception]) -> Iterator[None]:
    """Write within one transaction what there may be only once. Raises: `problem`, where it is there already."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        raise (problem if isinstance(problem, Exception) else problem()) from error


@contextmanager
def durable() -> Iterator[None]:
    """Run a transaction that is on the disk, with all before it, once it is committed; inside of one, join it.

    Raises: RuntimeError: a transaction is open whose commit is a cheap one.
    """
    if _open.durable:
        with transaction.atomic(savepoint=False):
            yield
        return
    # A test that is rolled back at its end is a transaction itself.
    switches = connection.vendor == "sqlite" and not connection.in_atomic_block
    if switches:
        _send(SYNCED)
    _open.durable = True
    try:
        with transaction.atomic(durable=True):
            if connection.vendor == "postgresql":
                _send(WAIT_FOR_DISK)
            # The first step after the commit: transactions of the others are cheap again.
            after_commit(_end, switches=switches)
            yield
    finally:
        _end(switches=switches)


def after_commit(step: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Take a step once the transaction is committed; an error is logged, and keeps no other step from being taken."""
    # Django logs it by a name that a bare `partial` does not have, and fails at that.
    transaction.on_commit(update_wrapper(partial(step, *args, **kwargs), step), robust=True)


def now() -> datetime:
    """Return the time by the one clock that all processes share; on SQLite it is this machine's own."""
    if connection.vendor == "sqlite":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        found: datetime = cursor.fetchone()[0]
    return found


def trouble(error: BaseException | None) -> str:
    """Return the trouble of the database itself in a few words; empty where `error` does not tell.

    `SENTENCES` has each for a person.
    """
    if not isinstance(error, DatabaseError):
        return ""
    cause = error.__cause__
    sign = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
    found = next((words for start, words in _SIGNS.items() if sign.startswith(start)), "")
    # PostgreSQL's client gives no code where there was no server to give one.
    lost = not sign and isinstance(error, OperationalError) and connection.vendor == "postgresql"
    return "unreachable" if lost else found


def in_db(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """`function`, run in the thread that holds database connections; stale ones are closed around it."""
    crossing: Callable[P, Awaitable[T]] = database_sync_to_async(function)
    return crossing


def for_page(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """As `in_db`, in another thread with a connection of its own, so that an open page is not drawn behind the work of
    models. It reads all that was committed before. Only for reads: on SQLite two who write keep each other waiting.
    """
    crossing: Callable[P, Awaitable[T]] = database_sync_to_async(function, thread_sensitive=False, executor=_PAGES)
    return crossing


def only(rows: QuerySet[M]) -> M | None:
    """The one row, where there can be no other; None without it. `first` would sort, which costs about as much again
    as the rest of such a query.
    """
    return next(iter(rows.order_by()[:1]), None)


def _end(*, switches: bool) -> None:
    _open.durable = False
    # One that was lost meanwhile comes back as it was set up.
    if switches and connection.connection is not None:
        _send(CHEAP)


def _send(statement: str) -> None:
    """Straight to the driver: a setting is no query of the application's."""
    connection.ensure_connection()
    with connection.wrap_database_errors:
        connection.connection.execute(statement)
