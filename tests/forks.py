"""Programs as forks of tests/fork_server.py, which saves the imports; used like subprocess.Popen and run.

A test about how programs start uses subprocess: tests/test_start.py does.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
# Python finds our modules, and the modules that others compiled, like a program started in ROOT.
OF_THE_SERVER: Final = (sys.executable, "-m", "tests.fork_server")
LAUNCHER: Final = ROOT / "tests" / "launcher.py"
_seconds: list[float] = []


class Forked:
    """A running script, in a session of its own. `settings`: whether it is one of Django's."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: int,
        errors: int,
        *,
        settings: bool = True,
    ) -> None:
        self._told, telling = os.pipe()
        umask = os.umask(0o077)
        os.umask(umask)
        request = {
            "arguments": [*arguments],
            "environment": {**environment},
            "folder": str(ROOT),
            "umask": umask,
            "settings": settings,
        }
        try:
            with Path(os.devnull).open("rb") as nothing:
                streams = [nothing.fileno(), output, errors, telling]
                socket.send_fds(_server(), [json.dumps(request).encode()], streams)
        finally:
            os.close(telling)
        self._line = b""
        self.arguments = [*arguments]
        self.pid = int(self._read(60.0))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._ended(0.0)

    def wait(self, timeout: float) -> int:
        """Return the exit code, as of Popen. Raises: subprocess.TimeoutExpired"""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.arguments, timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _ended(self, seconds: float) -> int | None:
        if self.returncode is None and (said := self._read(seconds)):
            code, spent = said.split()
            _seconds.append(float(spent))
            self.returncode = int(code)
            os.close(self._told)
        return self.returncode

    def _read(self, seconds: float) -> str:
        """Return the next line, or nothing if there is none in time."""
        end = time.monotonic() + seconds
        while b"\n" not in self._line:
            if not select.select([self._told], [], [], max(0.0, end - time.monotonic()))[0]:
                return ""
            read = os.read(self._told, 1024)
            assert read, "the fork server is gone"
            self._line += read
        line, _, self._line = self._line.partition(b"\n")
        return line.decode()


def run(arguments: Sequence[str], environment: Mapping[str, str], timeout: float) -> tuple[int, str, str]:
    """Run a script to its end; its exit code and what it wrote to standard output and error."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        program = Forked(arguments, environment, output.fileno(), errors.fileno())
        try:
            code = program.wait(timeout)
        except subprocess.TimeoutExpired:
            program.send_signal(signal.SIGKILL)
            raise
        written = []
        for file in (output, errors):
            file.seek(0)
            written.append(file.read().decode())
    return code, written[0], written[1]


def launching(script: Path, *arguments: str) -> tuple[str, ...]:
    """Return what to give to Python so that it becomes a fork that runs this script."""
    _server()
    return ("-IS", str(LAUNCHER), _name(), str(script), *arguments)


def spent() -> float:
    """Return the processor seconds of all that have ended."""
    return sum(_seconds)


def _name() -> str:
    """Return the name of the socket where programs connect, one without a file."""
    return f"hitlchat-forks-{os.getpid()}"


@cache
def _server() -> socket.socket:
    """Start the server, once; it ends with this process, however that ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as programs:
        programs.bind(f"\0{_name()}")
        programs.listen()
        given = [theirs.fileno(), programs.fileno()]
        process = subprocess.Popen(
            [*OF_THE_SERVER, *map(str, given)],
            cwd=ROOT,
            pass_fds=given,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        process.wait(60)

    atexit.register(end)
    return ours
