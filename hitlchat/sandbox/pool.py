"""The workers: who may use one, and the keepers, processes of ours that each drive one and read what tools give back.

At most TOOL_WORKERS work at a time, and nobody may hold more than a share of them. A freed worker goes to whoever of
those waiting holds the fewest. So a person whose tools sleep keeps others waiting no longer than one run takes, and
their own tools queue behind each other.

Reading a value is work that a tool chooses (a key that takes for ever to hash is four lines of code), so it must happen
where it can be killed. Keepers are started when they are needed and serve any event loop and any thread.
"""

import asyncio
import atexit
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from django.conf import settings

from hitlchat.base import scratch
from hitlchat.sandbox.walls import KEEPS_OUT, PYTHON, Status, Wall, Walls, launcher, walls
from hitlchat.sandbox.wire import Channel, Fault, Stopped

START_SECONDS = 30.0
ENDING_SECONDS = 2.0
ROOT = Path(__file__).parents[2]
PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from hitlchat.sandbox.keeper import main; "
    "main(int(sys.argv[2]), *sys.argv[3:])"
)
# For a run that has no share of the workers yet.
SHARE_SECONDS = 5.0
# A worker is free for who has a share, but may have to be started first.
TAKE_SECONDS = 60.0
RETRY_SECONDS = 2.0
NO_START = "the sandbox could not start; see the log"
NO_PROGRAMS = (
    "{} lets no program be started, as with the mount option noexec. Mount the folder for temporary files with exec, "
    "or set TMPDIR to another one"
)
NOT_IN_TIME = f"no worker of the sandbox started within {TAKE_SECONDS:g} s"
CLOSED = "the sandbox was closed just now"
# The share that the work of this context may use.
_own: "ContextVar[Share | None]" = ContextVar("sandbox_share", default=None)
# For whom runs of this context are that have no share yet; empty for the server itself.
on_behalf: ContextVar[str] = ContextVar("sandbox_on_behalf", default="")
logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Share:
    """The right to use one worker until it is given back; `is_run` for a whole run of a tool, of which each person has
    a limited number at a time.
    """

    shares: "Shares"
    person: str
    is_run: bool
    using: threading.Lock = field(default_factory=threading.Lock)

    @property
    def has_ended(self) -> bool:
        return self not in self.shares.given

    def leave(self) -> None:
        """Give the share back; doing so twice does no harm."""
        self.shares.take_back(self)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let what runs in this block use it instead of asking for another."""
        token = _own.set(self)
        try:
            yield
        finally:
            _own.reset(token)


@dataclass(eq=False)
class _Waiter:
    person: str
    is_run: bool
    since: float
    promise: "Future[Share]" = field(default_factory=Future)


class Shares:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.given: set[Share] = set()
        self._waiting: list[_Waiter] = []

    def now(self, person: str, *, is_run: bool = True) -> Share | None:
        """A share, if one is free for this person."""
        with self._lock:
            return self._give(person, is_run) if self._is_free_for(person, is_run) else None

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
            self.given.discard(share)
            self._match()

    def _give_up(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                return
        if not waiter.promise.cancelled():  # given in the very moment
            waiter.promise.result().leave()

    def _is_free_for(self, person: str, is_run: bool) -> bool:
        runs = sum(each.is_run for each in self.given if each.person == person)
        return len(self.given) < settings.TOOL_WORKERS and (not is_run or runs < largest())

    def _give(self, person: str, is_run: bool) -> Share:
        share = Share(self, person, is_run)
        self.given.add(share)
        return share

    def _match(self) -> None:
        """Hand free shares to those who wait. Call with the lock held."""
        while able := [each for each in self._waiting if self._is_free_for(each.person, each.is_run)]:
            shares = Counter(each.person for each in self.given)
            first = min(able, key=lambda each: (shares[each.person], each.since))
            self._waiting.remove(first)
            # wrap_future cancels the promise of whoever has just given up
            if first.promise.set_running_or_notify_cancel():
                first.promise.set_result(self._give(first.person, first.is_run))


def largest() -> int:
    """Return how many tools of one person run at a time: half of the workers, so that others find one."""
    return max(1, int(settings.TOOL_WORKERS) // 2)


class KeeperFailed(Exception):
    """A keeper did not start; the message says why."""


@dataclass(eq=False)
class Keeper:
    """One process of ours that drives one worker."""

    process: "subprocess.Popen[bytes]"
    channel: Channel

    @property
    def usable(self) -> bool:
        return self.channel.whole and self.process.poll() is None

    def wait_until_ready(self) -> None:
        """Wait until its worker has started. Raises: KeeperFailed"""
        if not self.channel.has_begun(START_SECONDS):
            self.kill()
            code = self.process.wait()
            raise KeeperFailed(f"the process that drives the interpreter ended with code {code} before it was ready")

    def kill(self) -> None:
        """End it and its worker at once. It may be busy with what no other signal interrupts."""
        self.channel.whole = False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        # the kernel may need a moment, and nobody here has to wait for it
        threading.Thread(target=self._bury, name="sandbox-end", daemon=True).start()

    def epitaph(self) -> Fault:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDING_SECONDS)
        if self.process.returncode == -signal.SIGPROF:
            return Fault("limit", "processor time: the values that the tool hands over take too long to read")
        return Fault(
            "crash", "the process that ran the tool ended unexpectedly; the tool may have done part of its work"
        )

    def _bury(self) -> None:
        self.process.wait()
        self.channel.close()


def start(launcher: Path) -> Keeper:
    """Start a keeper, which then starts its worker. Raises: KeeperFailed, OSError"""
    if not os.access(launcher, os.X_OK):
        raise KeeperFailed(NO_PROGRAMS.format(launcher.parent))
    ours, its = socket.socketpair()
    mark = f"_{secrets.token_hex(16)}"
    places = [str(ROOT), *(str(Path(place).resolve()) for place in sys.path)]
    command = [PYTHON, "-I", "-X", "utf8", "-c", PROGRAM, json.dumps(places), str(its.fileno()), str(launcher), mark]
    with its:
        process = subprocess.Popen(  # noqa: S603
            command,
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
            # Ctrl-C in a terminal is for the server alone, and the worker can be killed along with its keeper
            start_new_session=True,
        )
    return Keeper(process, Channel(ours, mark))


@dataclass
class Pool:
    """All keepers of this process. Whoever takes one has a share, so there are never more than TOOL_WORKERS."""

    walls: Walls
    pid: int = field(default_factory=os.getpid)
    failure: str = ""
    is_closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    # Held while a process is made, so that none comes after the pool was closed.
    _making: threading.Lock = field(default_factory=threading.Lock)
    # Also those that are only starting, which end with the pool: their workers are in a folder that is then removed.
    _all: set[Keeper] = field(default_factory=set)
    # For whoever comes next: those that are free, and those that are being started for somebody who was cancelled.
    _free: "list[Future[Keeper]]" = field(default_factory=list)

    def __post_init__(self) -> None:
        self._folder = scratch.make("sandbox")
        # once: a file that is being written cannot be executed
        self._launcher = launcher(self._folder.path, self.walls)

    @property
    def size(self) -> int:
        return len(self._all)

    async def take(self) -> Keeper:
        """Return a free keeper, or a new one. Raises: KeeperFailed"""
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                while True:
                    promise = self._promise()
                    try:
                        keeper = await asyncio.wrap_future(promise)
                    except asyncio.CancelledError:
                        with self._lock:
                            if not (self.is_closed or (promise.done() and promise.exception())):
                                self._free.append(promise)
                        raise
                    except KeeperFailed:
                        # Where others run, one of them may come free, or leave room for another.
                        if not self._all:
                            raise
                        await asyncio.sleep(RETRY_SECONDS)
                        continue
                    if keeper.usable:
                        return keeper
                    self.give(keeper)
        except TimeoutError:
            raise KeeperFailed(NOT_IN_TIME) from None

    def give(self, keeper: Keeper) -> None:
        """Take back what was lent; one that cannot be used again ends."""
        with self._lock:
            if keeper not in self._all:  # the pool was closed
                return
            if keeper.usable:
                promise: Future[Keeper] = Future()
                promise.set_result(keeper)
                self._free.append(promise)
                return
            self._all.discard(keeper)
        keeper.kill()

    def close(self) -> None:
        with self._making, self._lock:
            self.is_closed = True
            ended, self._all = self._all, set()
            self._free.clear()
        for keeper in ended:
            keeper.kill()
        self._folder.remove()

    def _promise(self) -> "Future[Keeper]":
        """Return a keeper that is free, is being started already, or begins to start now. Raises: KeeperFailed"""
        with self._lock:
            if self.is_closed:
                raise KeeperFailed(CLOSED)
            if self._free:
                found = next((each for each in reversed(self._free) if each.done()), self._free[0])
                self._free.remove(found)
                return found
        promise: Future[Keeper] = Future()
        # Running: who waits for it may be cancelled, the start may not.
        promise.set_running_or_notify_cancel()
        threading.Thread(target=self._start, args=[promise], name="sandbox-start", daemon=True).start()
        return promise

    def _make(self) -> Keeper:
        with self._making:
            if self.is_closed:
                raise KeeperFailed(CLOSED)
            keeper = start(self._launcher)
            with self._lock:
                self._all.add(keeper)
        return keeper

    def _start(self, promise: "Future[Keeper]") -> None:
        keeper = None
        try:
            keeper = self._make()
            keeper.wait_until_ready()
        except (OSError, KeeperFailed) as error:
            if not self.is_closed:
                logger.exception("the sandbox could not start")
            with self._lock:
                self.failure = f"{type(error).__name__}: {error}"
                self._all -= {keeper}
                if promise in self._free:
                    self._free.remove(promise)
                promise.set_exception(KeeperFailed(CLOSED if self.is_closed else NO_START))
            return
        with self._lock:
            self.failure = ""
            promise.set_result(keeper)


shares = Shares()
_lock = threading.Lock()
_pool: Pool | None = None


def status() -> Status:
    """Return the state in this process. Starts nothing; the first call probes the walls, which takes a moment."""
    found = walls()
    return Status(
        walls=[Wall(name, sentence, found.missing.get(name, "")) for name, sentence in KEEPS_OUT.items()],
        missing=found.reason,
        is_jailed=found.jailed,
        is_jail_required=bool(settings.TOOLS_REQUIRE_JAIL),
        most_workers=settings.TOOL_WORKERS,
        workers=_pool.size if _pool else 0,
        interpreter=f"pydantic-monty {version('pydantic-monty')}",
        failure=_pool.failure if _pool else "",
    )


@asynccontextmanager
async def lent() -> AsyncIterator[Keeper]:
    """A keeper for one run, on the share of this context if it has one.

    Stopped: none to be had. What ends in any other way than by itself costs the keeper.
    """
    pool = await _opened()
    with ExitStack() as stack:
        share = _own.get()
        if share and not share.has_ended and share.using.acquire(blocking=False):
            stack.callback(share.using.release)
        elif share := await shares.soon(on_behalf.get(), SHARE_SECONDS, is_run=False):
            stack.callback(share.leave)
        else:
            all_of_them = f"all {settings.TOOL_WORKERS} sandbox workers (TOOL_WORKERS) are busy"
            raise Stopped(Fault("busy", f"{all_of_them}: try again in a moment"))
        try:
            keeper = await pool.take()
        except KeeperFailed as failed:
            raise Stopped(Fault("unavailable", str(failed))) from None
        keeper.channel.begin()
        try:
            yield keeper
        except BaseException:
            keeper.channel.whole = False
            raise
        finally:
            pool.give(keeper)


async def close() -> None:
    """End the keepers and their workers; the next run starts new ones."""
    await asyncio.to_thread(_stop)


async def _opened() -> Pool:
    global _pool  # noqa: PLW0603
    found = await asyncio.to_thread(walls) if _pool is None else _pool.walls
    if not found.interpreter:
        raise Stopped(Fault("unavailable", found.reason))
    if settings.TOOLS_REQUIRE_JAIL and not found.jailed:
        missing = f"every wall is required (TOOLS_REQUIRE_JAIL), and this machine lacks some: {found.reason}"
        raise Stopped(Fault("unavailable", missing))
    with _lock:
        if _pool is None:
            if found.reason:
                logger.warning("tools run with a wall missing: %s", found.reason)
            _pool = Pool(found)
        if _pool.pid != os.getpid():
            logger.error("this process was forked after the sandbox had started")
            raise Stopped(Fault("unavailable", NO_START))
        return _pool


def _stop() -> None:
    global _pool
    with _lock:
        ended, _pool = _pool, None
    if ended is not None and ended.pid == os.getpid():
        ended.close()


atexit.register(_stop)
