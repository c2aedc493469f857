"""One keeper as the server sees it: a process, the connection to it, and what its end means."""

import json
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic_monty._binary import find_monty_binary

from hitlchat.sandbox.report import Fault
from hitlchat.sandbox.walls import JAIL, Walls
from hitlchat.sandbox.wire import Channel

# What starts the processes, as it was when this one started.
PYTHON = sys.executable
START_SECONDS = 30.0
ENDING_SECONDS = 2.0
ROOT = Path(__file__).parents[2]
PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from hitlchat.sandbox.keeper import main; "
    "main(int(sys.argv[2]), *sys.argv[3:])"
)


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
        """Why it ended, as the fault of the run that it had."""
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
