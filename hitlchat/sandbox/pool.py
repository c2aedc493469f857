"""The keepers: processes of ours that each drive one worker, one run at a time, and read what tools give back.

Reading a value is work that a tool chooses (a key that takes for ever to hash is four lines of code), so it must happen
where it can be killed. Keepers are started when they are needed and serve any event loop and any thread.
"""

import asyncio
import atexit
import json
import logging
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from pydantic_monty._binary import find_monty_binary

from hitlchat.base import scratch
from hitlchat.sandbox.shares import on_behalf, own, shares
from hitlchat.sandbox.walls import JAIL, Walls, walls
from hitlchat.sandbox.wire import Channel, Fault, Stopped

# What starts the processes, as it was when this one started.
PYTHON = sys.executable
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
NO_START = "the sandbox could not start; the log says why"
NOT_IN_TIME = f"no worker of the sandbox started within {TAKE_SECONDS:g} s"
CLOSED = "the sandbox was closed just now"
logger = logging.getLogger(__name__)


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

    def kill(self) -> None:
        """End it and its worker at once. It may be busy with what no other signal interrupts."""
        self.channel.whole = False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        # the kernel may need a moment, and nobody here has to wait for it
        threading.Thread(target=self._bury, name="sandbox-end", daemon=True).start()

    def epitaph(self) -> Fault:
        """Return why it ended, as the fault of the run that it had."""
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
    """A new keeper with its worker, ready for a run. KeeperFailed, OSError: it could not start."""
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
    ours.settimeout(START_SECONDS)
    try:
        ready = ours.recv(1)
    except TimeoutError:
        ready = b""
    if not ready:
        process.kill()
        code = process.wait()
        ours.close()
        raise KeeperFailed(f"the process that drives the interpreter ended with code {code} before it was ready")
    return Keeper(process, Channel(ours, mark))


def launcher(folder: Path, found: Walls) -> Path:
    """The file that a keeper starts as its worker: away from our folder, into the jail, then the interpreter."""
    jail = [PYTHON, "-IS", str(JAIL), "exec", ",".join(found.names)] if found.names else []
    script = folder / "worker"
    command = shlex.join([*jail, find_monty_binary()])
    script.write_text(f'#!/bin/sh\ncd / && exec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return script


@dataclass
class Pool:
    """All keepers of this process. Whoever takes one has a share, so there are never more than TOOL_WORKERS."""

    walls: Walls
    pid: int = field(default_factory=os.getpid)
    failure: str = ""
    is_closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _all: set[Keeper] = field(default_factory=set)
    _free: list[Keeper] = field(default_factory=list)
    # Those that are being started for somebody who was cancelled: the next one waits for them.
    _left: "set[Future[Keeper]]" = field(default_factory=set)

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
                        return await asyncio.wrap_future(promise)
                    except asyncio.CancelledError:
                        self._leave(promise)
                        raise
                    except KeeperFailed:
                        # Where others run, one of them may come free, or leave room for another.
                        if not self._all:
                            raise
                    await asyncio.sleep(RETRY_SECONDS)
        except TimeoutError:
            raise KeeperFailed(NOT_IN_TIME) from None

    def give(self, keeper: Keeper) -> None:
        """Take back what was lent; one that cannot be used again ends."""
        with self._lock:
            if keeper not in self._all:  # the pool was closed
                return
            if keeper.usable:
                self._free.append(keeper)
                return
            self._all.discard(keeper)
        keeper.kill()

    def close(self) -> None:
        with self._lock:
            self.is_closed = True
            ended, self._all = self._all, set()
            self._free.clear()
        for keeper in ended:
            keeper.kill()
        self._folder.remove()

    def _promise(self) -> "Future[Keeper]":
        """A keeper that is free, is being started already, or begins to start now. Raises: KeeperFailed"""
        promise: Future[Keeper] = Future()
        # Running: who waits for it may be cancelled, the start may not.
        promise.set_running_or_notify_cancel()
        with self._lock:
            if self.is_closed:
                raise KeeperFailed(CLOSED)
            while self._free:
                keeper = self._free.pop()
                if keeper.usable:
                    promise.set_result(keeper)
                    return promise
                self._all.discard(keeper)
                keeper.kill()
            if self._left:
                return self._left.pop()
        threading.Thread(target=self._start, args=[promise], name="sandbox-start", daemon=True).start()
        return promise

    def _leave(self, promise: "Future[Keeper]") -> None:
        with self._lock:
            if not promise.done():
                self._left.add(promise)
                return
        if promise.exception() is None:
            self.give(promise.result())

    def _start(self, promise: "Future[Keeper]") -> None:
        try:
            keeper = start(self._launcher)
        except (OSError, KeeperFailed) as error:
            if not self.is_closed:
                logger.exception("the sandbox could not start")
            with self._lock:
                self.failure = f"{type(error).__name__}: {error}"
                self._left.discard(promise)
                promise.set_exception(KeeperFailed(CLOSED if self.is_closed else NO_START))
            return
        with self._lock:
            self.failure = ""
            if self.is_closed:
                keeper.kill()
                promise.set_exception(KeeperFailed(CLOSED))
                return
            self._all.add(keeper)
            if promise in self._left:
                self._left.discard(promise)
                self._free.append(keeper)
            promise.set_result(keeper)


_lock = threading.Lock()
_pool: Pool | None = None


def current() -> Pool | None:
    """The pool, if this process has used it."""
    return _pool


@asynccontextmanager
async def lent() -> AsyncIterator[Keeper]:
    """A keeper for one run, on the share of this context if it has one.

    Stopped: none to be had. What ends in any other way than by itself costs the keeper.
    """
    pool = await _opened()
    with ExitStack() as stack:
        share = own.get()
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
