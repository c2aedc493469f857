"""The one way from asynchronous code to the database."""

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")


def in_db(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """`function`, run in the thread that holds database connections; stale ones are closed around it."""
    crossing: Callable[P, Awaitable[T]] = database_sync_to_async(function)
    return crossing
