"""Servers of other people's making, as processes of their own, and what it takes to connect to them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hitlchat.upstreams.client import Listing, Pool, ServerSpec, Status, Surroundings, Timeouts
from tests import forks
from tests.ports import free_port
from tests.waiting import soon, until

FOLDER: Final = Path(__file__).resolve().parent.parent
HONEST: Final = FOLDER / "honest_server.py"
HOSTILE: Final = FOLDER / "hostile_server.py"
# What ends by itself, at a limit of its own, is given this long by a test: seconds.
AT_MOST: Final = 60

SURROUNDINGS: Final = Surroundings(allow_stdio=True)
QUICK: Final = Timeouts(connect=15, listing=10, call=10, question=5, health_every=30, health=3, close=3, settle=0.1)


def honest(name: str = "honest", *arguments: str, **fields: Any) -> ServerSpec:
    return _python(name, *forks.launching(HONEST, "stdio", *arguments), **fields)


def hostile(*habits: str, **fields: Any) -> ServerSpec:
    return _python("hostile", str(HOSTILE), *habits, **fields)


def _python(name: str, *arguments: str, **fields: Any) -> ServerSpec:
    fields.setdefault("timeouts", QUICK)
    return ServerSpec(name, "stdio", command=sys.executable, args=arguments, **fields)


def at(url: str, name: str = "honest", **fields: Any) -> ServerSpec:
    fields.setdefault("timeouts", QUICK)
    transport = "sse" if url.endswith("/sse") else "http"
    return ServerSpec(name, transport, url=url, **{"allow_private": True, **fields})  # type: ignore[arg-type]


@dataclass
class Program:
    """A server that listens on a port; `start` again after `kill`. `command`: a script of Python's, or any program."""

    command: list[str]
    port: int
    path: str
    environment: dict[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | forks.Forked | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    def start(self) -> None:
        if self.process is not None:
            self.process.wait(40)
        self.process = self._started({**os.environ, **self.environment})
        until(self._listens, f"somebody listens on port {self.port}")

    def _listens(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the server ended with {self.process.returncode}"
        with closing(socket.socket()) as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    def _started(self, variables: dict[str, str]) -> "subprocess.Popen[bytes] | forks.Forked":
        with Path(os.devnull).open("wb") as nothing:
            if self.command[0].endswith(".py"):
                return forks.Forked(self.command, variables, nothing.fileno(), 2, settings=False)
            return subprocess.Popen(self.command, stdout=nothing, env=variables, start_new_session=True)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait(40)


StartServer = Callable[..., Program]


def starting() -> Iterator[StartServer]:
    """Start an honest server over HTTP (`transport="sse"` for the older one); options as on its command line."""
    started: list[Program] = []

    def start(transport: str = "http", *options: str) -> Program:
        port = free_port()
        command = [str(HONEST), transport, "--port", str(port), *options]
        started.append(Program(command, port, "/sse" if transport == "sse" else "/mcp"))
        started[-1].start()
        return started[-1]

    yield start
    for program in started:
        program.kill()


@dataclass
class Seen:
    """What a pool told."""

    listings: list[tuple[str, Listing]] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)

    async def tools(self, name: str, listing: Listing) -> None:
        self.listings.append((name, listing))

    def status(self, name: str, status: Status) -> None:
        self.statuses.append(status)


def written(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


async def up(pool: Pool, name: str = "honest") -> Status:
    pool.connect(name)
    await soon(lambda: pool.status(name).state == "up", f"{name} is up")
    return pool.status(name)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children() -> set[int]:
    """The processes that this one started and that are still there, dead ones that nobody waited for included."""
    found = set[int]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                found.add(int(folder.name))
    return found
