"""Waiting for something to become true, never longer than a bound."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from channels.db import database_sync_to_async

T = TypeVar("T")

SECONDS = 40.0
# Between two looks: short at first, then longer, since a look may cost a server more than it costs the test.
PAUSE, LONGEST_PAUSE, GROWTH = 0.01, 0.1, 1.2


class RanOut(AssertionError):
    """What was waited for did not come in time, which on a busy machine says little."""


def until(look: Callable[[], T], what: str = "", *, seconds: float = SECONDS) -> T:
    """What `look` returns once that is true. Raises: RanOut, after `seconds`."""
    end, pauses = time.monotonic() + seconds, _pauses()
    while not (found := look()):
        if time.monotonic() > end:
            raise RanOut(f"not within {seconds:g} s: {what or look}")
        time.sleep(next(pauses))
    return found


async def soon(look: Callable[[], Any], what: str = "", *, seconds: float = SECONDS) -> Any:
    """The same on an event loop, for a `look` that needs no database."""

    async def looked() -> Any:
        return look()

    return await found(looked, what or repr(look), seconds=seconds)


async def stored(look: Callable[[], Any], what: str = "", *, seconds: float = SECONDS) -> Any:
    """The same for a `look` into the database."""
    return await found(database_sync_to_async(look), what or repr(look), seconds=seconds)


async def found(look: Callable[[], Awaitable[Any]], what: str, *, seconds: float = SECONDS) -> Any:
    """The same for a `look` that itself waits for something."""
    end, pauses = time.monotonic() + seconds, _pauses()
    while not (seen := await look()):
        if time.monotonic() > end:
            raise RanOut(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(next(pauses))
    return seen


def _pauses() -> Iterator[float]:
    pause = PAUSE
    while True:
        yield pause
        pause = min(pause * GROWTH, LONGEST_PAUSE)
