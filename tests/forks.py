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
SHARED: Final = "TEST_FORKS"
LAUNCHER: Final = ROOT / "tests" / "launcher.py"
_running: list[tuple[socket.socket, "subprocess.Popen[bytes]"]] = []


class Forked:
    """A running script, in a session of its own. `entry`: what it reads, else nothing; `settings`: whether it is one
    of Django's.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: int,
        errors: int,
        *,
        entry: int | None = None,
        settings: bool = True,
    ) -> None:
        umask = os.umask(0o077)
        os.umask(umask)
        request = {
            "arguments": [*arguments],
            "environment": {**environment},
            "folder": str(ROOT),
            "umask": umask,
            "settings": settings,
        }
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._told.connect(f"\0{server()}")
        with Path(os.devnull).open("rb") as nothing:
            streams = [nothing.fileno() if entry is None else entry, output, errors]
            socket.send_fds(self._told, [json.dumps(request).encode()], streams)
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
            self.returncode = int(said)
            self._told.close()
        return self.returncode

    def _read(self, seconds: float) -> str:
        """Return the next line, or nothing if there is none in time."""
        end = time.monotonic() + seconds
        while b"\n" not in self._line:
            if not select.select([self._told], [], [], max(0.0, end - time.monotonic()))[0]:
                return ""
            read = self._told.recv(1024)
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
    return ("-IS", str(LAUNCHER), server(), str(script), *arguments)


@cache
def server() -> str:
    """Return the name of the socket, one without a file, where programs connect that want to be forks.

    The passes of `make test` share the server of tests/run.py, whose name is in TEST_FORKS. Else it is started, once,
    and ends with this process, however that ends.
    """
    if shared := os.environ.get(SHARED):
        return shared
    name = f"hitlchat-forks-{os.getpid()}"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as programs:
        programs.bind(f"\0{name}")
        programs.listen(64)
        given = [theirs.fileno(), programs.fileno()]
        process = subprocess.Popen(
            [*OF_THE_SERVER, *map(str, given)],
            cwd=ROOT,
            pass_fds=given,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    _running.append((ours, process))
    return name


@atexit.register
def end() -> None:
    """End the server that this process started, if it did."""
    while _running:
        ours, process = _running.pop()
        ours.close()
        process.wait(60)
