"""Shares of the workers: at most TOOL_WORKERS work at a time, and nobody may hold more than a share of them.

A freed worker goes to whoever of those waiting holds the fewest. So a person whose tools sleep keeps others waiting
no longer than one run takes, and their own tools queue behind each other.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from django.conf import settings

# The share that the work of this context may use.
own: "ContextVar[Share | None]" = ContextVar("sandbox_share", default=None)

# For whom runs of this context are that have no share yet; empty for the server itself.
on_behalf: ContextVar[str] = ContextVar("sandbox_on_behalf", default="")


@dataclass(eq=False)
class Share:
    """The right to use one worker until it is given back; `is_run` for a whole run of a tool, of which each person has
    a limited number at a time.
    """

    shares: "Shares"
    person: str
    is_run: bool
    using: threading.Lock = field(default_factory=threading.Lock)
    has_ended: bool = False

    def leave(self) -> None:
        """Give the share back; doing so twice does no harm."""
        self.shares.take_back(self)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let what runs in this block use it instead of asking for another."""
        token = own.set(self)
        try:
            yield
        finally:
            own.reset(token)


@dataclass(eq=False)
class _Waiter:
    person: str
    is_run: bool
    since: float
    promise: "Future[Share]" = field(default_factory=Future)


class Shares:
    """The shares of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._runs: Counter[str] = Counter()
        self._waiting: list[_Waiter] = []

    def now(self, person: str, *, is_run: bool = True) -> Share | None:
        """A share, if one is free for this person."""
        with self._lock:
            return self._given(person, is_run) if self._is_free_for(person, is_run) else None

    async def soon(self, person: str, seconds: float, *, is_run: bool = True, since: float = 0.0) -> Share | None:
        """The next share for this person; None if there is none within `seconds`. `since` says from when on they have
        been waiting, where two hold equally many.
        """
        waiter = _Waiter(person, is_run, since)
        with self._lock:
            self._waiting.append(waiter)
            self._match()
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(waiter.promise)
        except BaseException as error:
            self._give_up(waiter)
            if isinstance(error, TimeoutError):
                return None
            raise

    def take_back(self, share: Share) -> None:
        with self._lock:
            if share.has_ended:
                return
            share.has_ended = True
            self._held[share.person] -= 1
            self._runs[share.person] -= share.is_run
            self._held, self._runs = +self._held, +self._runs
            self._match()

    def _give_up(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                return
        if not waiter.promise.cancelled():  # given in the very moment
            waiter.promise.result().leave()

    def _is_free_for(self, person: str, is_run: bool) -> bool:
        if self._held.total() >= settings.TOOL_WORKERS:
            return False
        return not is_run or self._runs[person] < largest()

    def _given(self, person: str, is_run: bool) -> Share:
        self._held[person] += 1
        self._runs[person] += is_run
        return Share(self, person, is_run)

    def _match(self) -> None:
        """Hand free shares to those who wait. Call with the lock held."""
        while able := [each for each in self._waiting if self._is_free_for(each.person, each.is_run)]:
            first = min(able, key=lambda each: (self._held[each.person], each.since))
            self._waiting.remove(first)
            # wrap_future cancels the promise of whoever has just given up
            if first.promise.set_running_or_notify_cancel():
                first.promise.set_result(self._given(first.person, first.is_run))


def largest() -> int:
    """Return how many tools of one person run at a time: half of the workers, so that others find one."""
    return max(1, int(settings.TOOL_WORKERS) // 2)


shares = Shares()
