"""Threads for functions that block. One per call, and none that a process would have to wait for when it ends."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")

MOST_AT_ONCE = 64


class Busy(RuntimeError):
    """Too many functions are running already; this one was not started."""


class OwnThreads(Executor):
    """A function that hangs keeps its thread for ever: with a fixed number of them, a few of those would stop all."""

    def __init__(self, most: int = MOST_AT_ONCE) -> None:
        self._free = threading.BoundedSemaphore(most)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Busy when all are taken."""
        if not self._free.acquire(blocking=False):
            raise Busy("too many functions of this project are running already")
        future: Future[T] = Future()

        def run() -> None:
            try:
                value = self._alone(partial(function, *args, **kwargs))
            except BaseException as error:
                future.set_exception(error)
                raise
            future.set_result(value)

        future.set_running_or_notify_cancel()
        threading.Thread(target=run, daemon=True, name="project-tool").start()
        return future

    def _alone(self, function: Callable[[], T]) -> T:
        try:
            return function()
        finally:
            # The thread ends here, and nobody else could close what it opened.
            connections.close_all()
            self._free.release()


own_threads = OwnThreads()
