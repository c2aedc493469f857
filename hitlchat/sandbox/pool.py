"""The workers: one pool for each process, started at the first run, jailed where the machine can."""

import asyncio
import atexit
import logging
import os
import shlex
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from pydantic_monty import AsyncMonty
from pydantic_monty._binary import find_monty_binary

from .walls import JAIL, Walls, walls

logger = logging.getLogger(__name__)

# A tool that waits for the host keeps its worker; an idle one costs 10 MB.
WORKERS = max(4, os.cpu_count() or 1)
CHECKOUT_SECONDS = 5.0
# Kills a worker that stops answering; above every limit that the interpreter keeps itself.
TURN_SECONDS = 15.0
GRACE_SECONDS = 0.5
RUNS_PER_WORKER = 200
# Ending a process within milliseconds of the pool's last use aborts it (exit 134).
EXIT_PAUSE_SECONDS = 0.1


class JailMissing(Exception):
    """The jail is required and this machine cannot build it."""


@dataclass(frozen=True)
class _Pool:
    monty: AsyncMonty
    folder: Path
    pid: int
    walls: Walls


_lock = threading.Lock()
_pool: _Pool | None = None


async def workers(*, require_jail: bool) -> AsyncMonty:
    """The running pool. JailMissing: required and not there. RuntimeError: this is a fork of the pool's process."""
    pool = _pool
    if pool is None:
        # a thread of its own: whoever waits here may be cancelled, the start may not
        pool = await asyncio.to_thread(_start, require_jail)
    _check(pool.walls, pool.pid, require_jail)
    return pool.monty


async def close() -> None:
    """End the workers; the next run starts new ones."""
    await asyncio.to_thread(_stop)


def _start(require_jail: bool) -> _Pool:
    global _pool  # noqa: PLW0603
    with _lock:
        if _pool is None:
            found = walls()
            _check(found, os.getpid(), require_jail)
            if found.reason:
                logger.warning("tools run with a wall missing: %s", found.reason)
            folder = Path(tempfile.mkdtemp(prefix="hitlchat-sandbox-"))
            try:
                monty = _monty(_launcher(folder, found))
                asyncio.run(_enter(monty))
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            _pool = _Pool(monty, folder, os.getpid(), found)
        return _pool


def _check(found: Walls, pid: int, require_jail: bool) -> None:
    if pid != os.getpid():
        raise RuntimeError("this process was forked after the sandbox had started")
    if not found.interpreter:
        raise JailMissing(found.reason)
    if require_jail and not found.jailed:
        raise JailMissing(f"the jail is required (TOOLS_REQUIRE_JAIL) and this machine cannot build it: {found.reason}")


def _monty(launcher: Path) -> AsyncMonty:
    return AsyncMonty(
        binary_path=launcher,
        min_processes=1,
        max_processes=WORKERS,
        checkout_timeout=CHECKOUT_SECONDS,
        request_timeout=TURN_SECONDS,
        max_checkouts_per_worker=RUNS_PER_WORKER,
        feed_duration_limit_grace=GRACE_SECONDS,
        turn_duration_limit_grace=GRACE_SECONDS,
    )


async def _enter(monty: AsyncMonty) -> None:
    await monty.__aenter__()


async def _leave(monty: AsyncMonty) -> None:
    await monty.__aexit__(None, None, None)


def _launcher(folder: Path, found: Walls) -> Path:
    """The file that the pool starts as a worker: away from our folder, into the jail, then the interpreter."""
    binary = find_monty_binary()
    jail = [sys.executable, "-IS", str(JAIL), "exec", ",".join(found.names)] if found.jailed else []
    command = [*jail, binary]
    script = folder / "worker"
    script.write_text(f'#!/bin/sh\ncd / && exec {shlex.join(command)} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return script


def _stop() -> None:
    global _pool
    with _lock:
        pool, _pool = _pool, None
        if pool is None or pool.pid != os.getpid():
            return
        asyncio.run(_leave(pool.monty))
        shutil.rmtree(pool.folder, ignore_errors=True)
        time.sleep(EXIT_PAUSE_SECONDS)


atexit.register(_stop)
