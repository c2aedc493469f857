"""What it costs that a call of an upstream server's tool goes through the gate, and to know what servers offer.

Next to each figure, as its floor, the same call of the same server by the bare SDK, in the same process and run.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from time import perf_counter
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from mcp.client import Client

from bench import people, sizes
from bench.children import child
from bench.figures import Figure
from bench.measure import Stopwatch, percentile
from hitlchat.base.background import background
from hitlchat.base.database import in_db
from hitlchat.gate import decide
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.gate.transition import call_moved
from hitlchat.upstreams import connections, exposure, servers
from hitlchat.upstreams.changes import Change
from hitlchat.upstreams.models import ComposedTool, ServerState, UpstreamServer
from hitlchat.upstreams.server_draft import ServerDraft
from tests.conftest import PASSWORD

KB, MB = 1024, 1_000_000
# How many at the same time, of which size, how often.
SHAPES = sizes.of(((1, KB, 200), (16, KB, 320), (1, MB, 20), (16, MB, 32)), ((1, KB, 2), (2, MB, 2)))
TOOLS = sizes.of((100, 1000, 5000), (100,))
GOAL_CPU_MS = 6.0
PATIENCE = 120.0

Call = Callable[[int], Awaitable[None]]


def measure() -> Iterator[Figure]:
    people.bob()
    # The SDK has a line for every request.
    logging.getLogger("mcp").setLevel(logging.WARNING)
    with child("bench.shop", "2") as port:
        yield from asyncio.run(_calls(port))
    for count in TOOLS:
        with child("bench.shop", str(count)) as port:
            yield asyncio.run(_discovery(port, count))
    yield asyncio.run(_comes_back())


# -- Calls ------------------------------------------------------------------------------------------------------------


async def _calls(port: int) -> list[Figure]:
    found: list[Figure] = []
    async with _server(port) as ended, Client(_url(port)) as sdk:
        free, gated = await in_db(_exposed)()

        async def direct(size: int) -> None:
            result = await sdk.call_tool("free", {"size": size})
            assert not result.is_error

        async def allowed(size: int) -> None:
            await ended.of(await submit(_request(free, size)))

        async def approved(size: int) -> None:
            call = await submit(_request(gated, size))
            await in_db(decide.approve)(call.approval.pk, people.actor(), digest=call.approval.digest)
            await ended.of(call)

        for at_once, size, times in SHAPES:
            await _many(direct, at_once, size, at_once)
            bare = await _many(direct, at_once, size, times)
            for name, call in (("allowed", allowed), ("approved", approved)):
                await _many(call, at_once, size, at_once)
                found += _figures(
                    f"{name}, {_size(size)}, {at_once} at once", await _many(call, at_once, size, times), bare
                )
    return found


class Took:
    """What so many calls took: each on the wall, and all together."""

    def __init__(self) -> None:
        self.each: list[float] = []
        self.all = Stopwatch()

    def ms(self, part: float) -> float:
        return percentile(self.each, part) * 1000

    @property
    def cpu(self) -> float:
        return self.all.cpu * 1000 / len(self.each)


async def _many(call: Call, at_once: int, size: int, times: int) -> Took:
    took, left = Took(), iter(range(times))

    async def go_on() -> None:
        for _ in left:
            began = perf_counter()
            await asyncio.wait_for(call(size), PATIENCE)
            took.each.append(perf_counter() - began)

    with took.all:
        await asyncio.gather(*(go_on() for _ in range(at_once)))
    return took


def _figures(what: str, took: Took, bare: Took) -> list[Figure]:
    goal = GOAL_CPU_MS if what == "allowed, 1 KB, 1 at once" else None
    wall = f"p95 {took.ms(0.95):.1f} ms, the SDK's {bare.ms(0.95):.1f} ms"
    return [
        Figure(f"{what}: p50", took.ms(0.5), "ms", bare.ms(0.5), note=wall),
        Figure(f"{what}: CPU", took.cpu, "ms", bare.cpu, goal),
    ]


def _size(size: int) -> str:
    return "1 KB" if size == KB else "1 MB"


# -- What servers offer -----------------------------------------------------------------------------------------------


async def _discovery(port: int, count: int) -> Figure:
    """From the moment when someone has entered the address until all tools can be chosen."""
    watch = Stopwatch()
    with watch:
        async with _server(port):
            pass
    seconds = f"{watch.cpu:.2f} s CPU of this process, connecting and leaving included"
    return Figure(f"{count:,} tools found: wall", watch.wall, "s", note=seconds)


async def _comes_back() -> Figure:
    """A server is started again: how long until its tools are back, of which the pauses between attempts are most."""
    with child("bench.shop", "2") as port:
        server = await in_db(_add)(port)
        keeper = asyncio.create_task(connections.serve())
        await _until(lambda: _has_tools(server))
    await _until(lambda: _is_in(server, ServerState.DOWN))
    with child("bench.shop", "2", str(port)):
        began = perf_counter()
        await _until(lambda: _is_in(server, ServerState.UP) and UpstreamServer.objects.get(pk=server.pk).present)
        took = perf_counter() - began
        await _leave(server, keeper)
    return Figure("a server was started again: back in the catalog after", took, "s")


# -- A loop that works as a server's does -----------------------------------------------------------------------------


class Ended:
    """Tells when calls have ended."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended: dict[UUID, asyncio.Future[Status]] = {}

    def hear(self, *, call_id: UUID, status: Status, **_: Any) -> None:
        if status in SETTLED:
            self._loop.call_soon_threadsafe(self._settle, call_id, status)

    def _settle(self, call_id: UUID, status: Status) -> None:
        if not (future := self._of(call_id)).done():
            future.set_result(status)

    async def of(self, call: Any) -> None:
        assert await self._of(call.pk) == Status.SUCCEEDED
        del self._ended[call.pk]

    def _of(self, call_id: UUID) -> "asyncio.Future[Status]":
        return self._ended.setdefault(call_id, self._loop.create_future())


@asynccontextmanager
async def _server(port: int) -> AsyncIterator[Ended]:
    ended = Ended()
    background.adopt(asyncio.get_running_loop())
    call_moved.connect(ended.hear)
    server = await in_db(_add)(port)
    keeper = asyncio.create_task(connections.serve())
    await _until(lambda: _has_tools(server))
    yield ended
    await _leave(server, keeper)
    call_moved.disconnect(ended.hear)
    await background.drain(5)
    background.adopt(None)


async def _leave(server: UpstreamServer, keeper: "asyncio.Task[None]") -> None:
    keeper.cancel()
    with suppress(asyncio.CancelledError):
        await keeper
    await connections.end()
    await in_db(servers.delete)(server.pk, _alice())


async def _until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await in_db(look)():  # noqa: ASYNC110 - rows tell nobody that they changed
            await asyncio.sleep(0.01)


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}/mcp"


@cache
def _administrator() -> User:
    return User.objects.create_superuser("alice", password=PASSWORD)


def _alice() -> Actor:
    return Actor(_administrator().pk, "session")


def _add(port: int) -> UpstreamServer:
    return servers.create(ServerDraft("shop", url=_url(port)), _alice())


def _exposed() -> tuple[Tool, Tool]:
    """One that needs no yes, and one that does."""
    rows = {row.name: row.pk for row in ComposedTool.objects.filter(name__in=["free", "gated"])}
    modes = {"free": HitlMode.DISABLED, "gated": HitlMode.REQUIRED}
    wanted = [Change(rows[name], exposed=True, hitl_mode=mode) for name, mode in modes.items()]
    free, gated = exposure.apply(wanted, _alice())
    assert free.tool is not None
    assert gated.tool is not None
    return free.tool, gated.tool


def _has_tools(server: UpstreamServer) -> bool:
    return server.tools.exists()


def _is_in(server: UpstreamServer, state: ServerState) -> bool:
    return UpstreamServer.objects.filter(pk=server.pk, state=state).exists()


def _request(tool: Tool, size: int) -> CallRequest:
    return CallRequest(tool.name, {"size": size}, people.caller())
