"""Servers of other people's making, as processes of their own, and what it takes to connect to them."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx2
from mcp_types import ElicitResult

from hitlchat.upstreams.client.connection import Connection, Status
from hitlchat.upstreams.client.link import Question, Step, ToolCall
from hitlchat.upstreams.client.listing import Listing
from hitlchat.upstreams.client.results import Answer, Outcome
from hitlchat.upstreams.client.spec import ServerSpec, Timeouts
from tests import forks
from tests.ports import free_port
from tests.waiting import soon, until

FOLDER: Final = Path(__file__).resolve().parent.parent
HONEST: Final = FOLDER / "honest_server.py"
HOSTILE: Final = FOLDER / "hostile_server.py"
# What ends by itself, at a limit of its own, is given this long by a test: seconds.
AT_MOST: Final = 60

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


class Steps(list[Step]):
    """The progress of one call."""

    async def take(self, step: Step) -> None:
        self.append(step)


@dataclass
class Person:
    """Answers all questions alike, and remembers them."""

    answer: ElicitResult
    questions: list[Question] = field(default_factory=list)

    async def reply(self, question: Question) -> ElicitResult:
        self.questions.append(question)
        return self.answer


@dataclass
class Seen:
    """What the connections of a pool told."""

    listings: list[tuple[str, Listing]] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)

    async def tools(self, name: str, listing: Listing) -> None:
        self.listings.append((name, listing))


class Pool:
    """The connections of one test, by the names of their servers."""

    def __init__(self, seen: Seen | None = None) -> None:
        self._seen = seen or Seen()
        self._connections: dict[str, Connection] = {}

    async def put(self, spec: ServerSpec, *, auth: httpx2.Auth | None = None) -> None:
        await self.remove(spec.name)
        tools, status = partial(self._seen.tools, spec.name), self._seen.statuses.append
        found = Connection(spec, auth=auth, on_tools=tools, on_status=status)
        self._connections[spec.name] = found

    async def remove(self, name: str) -> None:
        if (old := self._connections.pop(name, None)) is not None:
            await old.close()

    def connect(self, name: str) -> None:
        self._connections[name].start()

    def status(self, name: str) -> Status:
        return self._connections[name].status

    async def call_tool(self, server: str, name: str, arguments: dict[str, Any], **how: Any) -> Outcome:
        return await self._connections[server].call_tool(ToolCall(name, arguments, **how))

    async def answer(self, server: str, name: str, arguments: dict[str, Any] | None = None, **how: Any) -> Answer:
        found = await self.call_tool(server, name, arguments or {}, **how)
        assert isinstance(found, Answer), found
        return found

    async def list_tools(self, server: str) -> Listing:
        return await self._connections[server].list_tools()

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in self._connections.values()))


def written(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


async def up(pool: Pool, name: str = "honest") -> Status:
    pool.connect(name)
    await soon(lambda: pool.status(name).state == "up", f"{name} is up")
    return pool.status(name)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def memory() -> int:
    """Of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * 4096


def children() -> set[int]:
    """The processes that this one started and that are still there, dead ones that nobody waited for included."""
    return {number for number, (_, parent, *_) in _processes() if int(parent) == os.getpid()}


def living_groups(leaders: set[int]) -> set[int]:
    """Those of the process groups that still have a living member."""
    return {int(group) for _, (state, _, group, *_) in _processes() if state != "Z"} & leaders


def _processes() -> Iterator[tuple[int, list[str]]]:
    """All of this machine, with their states, parents, groups and so on."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                yield int(folder.name), (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
