"""Work that outlives the request that caused it: tasks and workers on the loop, woken from any thread."""

import asyncio
import contextvars
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import cache
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from django.db import OperationalError, connections, transaction

LONGEST_PAUSE = 10.0
# The names of those workers of this process whose last try failed.
failing: set[str] = set()

Work = Callable[..., Awaitable[Any]]
P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)


@cache
def me() -> str:
    """Return the name of this process in leases."""
    return uuid4().hex


# Servers that load the application once and then fork are several processes.
os.register_at_fork(after_in_child=me.cache_clear)


def layer_errors() -> tuple[type[Exception], ...]:
    """Return what a channel layer raises that cannot be reached."""
    if "redis" not in sys.modules:
        return (OSError,)  # Whoever has not loaded it raises none of its errors.
    from redis import RedisError  # noqa: PLC0415 - it loads OpenTelemetry, for nothing where there is no Redis

    return OSError, RedisError


class Waker(asyncio.Event):
    """An event that can be set from the thread in which a transaction was committed. Of the loop that makes it."""

    def __init__(self) -> None:
        super().__init__()
        self._home = asyncio.get_running_loop()

    def wake(self) -> None:
        if not self._home.is_closed():
            self._home.call_soon_threadsafe(self.set)


class Busy(RuntimeError):
    """All threads are taken; the function was not started."""


class OwnThreads(Executor):
    """A function that hangs keeps its thread for ever: with a fixed number of them, a few of those would stop all."""

    def __init__(self, name: str, most: int) -> None:
        self._name, self._free = name, threading.BoundedSemaphore(most)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Raises: Busy"""
        if not self._free.acquire(blocking=False):
            raise Busy
        future: Future[T] = Future()

        def run() -> None:
            try:
                try:
                    value = function(*args, **kwargs)
                finally:
                    # The thread ends here, and nobody else could close what it opened.
                    connections.close_all()
                    self._free.release()
            except StopIteration as error:
                # As in coroutines: no future of asyncio takes it.
                future.set_exception(RuntimeError(repr(error)))
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                future.set_exception(error)
            else:
                future.set_result(value)

        future.set_running_or_notify_cancel()
        threading.Thread(target=run, daemon=True, name=self._name).start()
        return future


class Background:
    """The tasks of one process. Without an adopted loop nothing is started: a server's sweeper picks the work up."""

    def __init__(self) -> None:
        # Whether the process is ending: runs that only begin now are for the next one.
        self.leaving = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def adopt(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        self.leaving = False

    @property
    def running(self) -> bool:
        return self._loop is not None and self._loop.is_running()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The one that was adopted: work on another one may never end."""
        return self._loop

    def spawn(self, work: Work, *arguments: Any) -> None:
        """Start `work` soon; thread-safe. A failure is logged, never lost."""
        if self._loop is not None and self.running:
            self._loop.call_soon_threadsafe(self._start, work, arguments)

    def _start(self, work: Work, arguments: tuple[Any, ...]) -> None:
        async def logged() -> None:
            try:
                await work(*arguments)
            except Exception:
                logger.exception("A background task failed: %s", getattr(work, "__qualname__", work))

        # An empty context: one inherited from a web request would tie database access to that request's thread.
        task = asyncio.get_running_loop().create_task(logged(), context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, seconds: float) -> None:
        """Give running tasks `seconds` to end, then cancel them and wait for that."""
        own = asyncio.current_task()
        tasks = {task for task in self._tasks if task is not own}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=5)


class Worker:
    """Work of a server process that is done again and again: `look` is awaited every so many seconds, or once woken.

    A failure never ends it: the database may be restarting. The pauses then double, up to `longest` seconds. A worker
    that renews a lease must not pause longer than usual, or others take over its work.
    """

    def __init__(
        self, name: str, look: Callable[[], Awaitable[object]], every: float, *, longest: float = LONGEST_PAUSE
    ) -> None:
        self._name, self._look, self._every = name, look, every
        self._longest, self._failures = max(every, longest), 0
        self._awake = Waker()

    def wake(self) -> None:
        """Have it look now; from any thread."""
        self._awake.wake()

    async def work(self) -> None:
        try:
            while True:
                self._awake.clear()
                await self.turn()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.pause):
                        await self._awake.wait()
        finally:
            failing.discard(self._name)

    @property
    def pause(self) -> float:
        """Return how many seconds it waits before it looks again by itself."""
        return min(self._every * float(2**self._failures), self._longest)

    async def turn(self) -> None:
        try:
            await self._look()
        except Exception:
            # Doubled no further, as the pause is the longest long before.
            self._failures = min(self._failures + 1, 10)
            failing.add(self._name)
            logger.exception("The worker %r failed and will try again", self._name)
        else:
            self._failures = 0
            failing.discard(self._name)


def attempt(step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Return the result of `step` on the database, or None if it fails, which is then undone and logged.

    For steps that must not keep the rest of a transaction from being done. Raises: OperationalError, since the database
    itself fails and whatever comes next would.
    """
    try:
        with transaction.atomic():
            return step(*args, **kwargs)
    except OperationalError:
        raise
    except Exception:
        logger.exception("A step failed; the next ones continue without it")
        return None


background = Background()
