"""A server that runs as a program of this machine: started with little, and ended with everything it started."""

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from hitlchat.base import scratch
from hitlchat.upstreams.client.spec import ServerSpec

# What programs need to run at all; everything else of our own environment is kept from them.
INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
BUFFER_BYTES = 256 * 1024
POLITE_SECONDS = 2.0
TERM_SECONDS = 1.0
KILL_SECONDS = 1.0
POLL_SECONDS = 0.01


class NotStarted(Exception):
    """The program could not be started; in words for the administrator."""


class _Protocol(SubprocessStreamProtocol):
    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


@dataclass(frozen=True)
class Child:
    process: Process
    transport: asyncio.SubprocessTransport
    exited: asyncio.Event


@asynccontextmanager
async def child(spec: ServerSpec) -> AsyncIterator[Child]:
    """The running program; at the end nothing of its process group is left, within 4 seconds. NotStarted."""
    with _folder(spec.cwd) as folder:
        with anyio.CancelScope(shield=True):
            # Cancelled in the middle of it, nobody would know of the program.
            started = await _started(spec, folder)
        try:
            yield started
        finally:
            # Cancelled or not: a program left running is nobody's.
            with anyio.CancelScope(shield=True):
                await _end(started)


def environment(given: Mapping[str, str], folder: Path) -> dict[str, str]:
    own = {name: value for name in INHERITED if (value := os.environ.get(name))}
    return {"HOME": str(folder), "TMPDIR": str(folder), **own, **given}


def can_be_found_with(command: str, given: Mapping[str, str]) -> bool:
    """Whether there is such a program, where one that gets the variables `given` is looked for: in an empty folder, and
    so not by a relative path."""
    if "/" in command:
        return command.startswith("/") and shutil.which(command) is not None
    return shutil.which(command, path=given.get("PATH") or os.environ.get("PATH") or os.defpath) is not None


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """The working folder: the given one, or an empty one that goes when the program does."""
    if given is not None:
        yield given
        return
    made = scratch.make("upstream")
    try:
        yield made.path
    finally:
        made.remove()


async def _started(spec: ServerSpec, folder: Path) -> Child:
    loop = asyncio.get_running_loop()
    variables = environment(spec.env, folder)
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(BUFFER_BYTES, loop),
            spec.command,
            *spec.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=variables,
            cwd=str(folder),
            # A group of its own, so that all of it can be ended at once.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        # Python tells the two apart by the file that the error names.
        missing = "the folder" if error.filename == str(folder) else "the program"
        raise NotStarted(f"{missing} {error.filename!r} was not found") from error
    except (OSError, ValueError) as error:
        raise NotStarted(f"{spec.command!r} could not be started: {error}") from error
    return Child(Process(transport, protocol, loop), transport, protocol.exited)


async def _end(started: Child) -> None:
    group = started.process.pid
    stdin = started.process.stdin
    if stdin is not None:
        with suppress(OSError, RuntimeError):
            stdin.close()
    if not await _gone(started, POLITE_SECONDS):
        _signal(group, signal.SIGTERM)
        await _gone(started, TERM_SECONDS)
    # Also after a polite end: what it started itself may not have followed.
    _signal(group, signal.SIGKILL)
    await _gone(started, KILL_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        started.transport.close()
    # One turn of the loop for the pipes to close.
    await asyncio.sleep(0)


async def _gone(started: Child, seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        # Not `wait`: that also waits for whoever else holds the pipes.
        await started.exited.wait()
    return started.exited.is_set()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
