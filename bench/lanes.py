"""Servers next to each other, called in turns, so that they meet the same machine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter

from mcp_types import CallToolResult

from bench import sizes
from bench.home import ARGUMENTS
from bench.measure import cpu, median, percentile
from bench.wire import wire
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status
from tests.mcp_server.clients import connected, yes
from tests.processes import Person

ROUNDS = sizes.of(3, 1)
WARM = sizes.of(4, 0)
PATIENCE = 30.0

Call = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Target:
    pid: int
    port: int
    token: str = "none"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass
class Lane:
    """One way to make one call. `opened` connects, and gives what makes the call."""

    target: Target
    opened: Callable[[], AbstractAsyncContextManager[Call]]
    times: list[float] = field(default_factory=list)
    rounds: list[tuple[float, float]] = field(default_factory=list)

    def ms(self, part: float) -> float:
        return percentile(self.times, part) * 1000

    @property
    def cpu_ms(self) -> float:
        return median(used for used, _ in self.rounds) * 1000

    @property
    def per_second(self) -> float:
        return median(rate for _, rate in self.rounds)


async def take_turns(lanes: list[Lane], at_once: int, times: int) -> list[Lane]:
    async with AsyncExitStack() as stack:
        calls = [await stack.enter_async_context(lane.opened()) for lane in lanes]
        for call in calls:
            await _many(call, at_once, at_once + WARM)
        for _ in range(ROUNDS):
            for lane, call in zip(lanes, calls, strict=True):
                used, began = cpu(lane.target.pid), perf_counter()
                lane.times += await _many(call, at_once, times)
                took = perf_counter() - began
                lane.rounds.append(((cpu(lane.target.pid) - used) / times, times / took))
    return lanes


async def _many(call: Call, at_once: int, times: int) -> list[float]:
    each, left = [], iter(range(times))

    async def go_on() -> None:
        for _ in left:
            began = perf_counter()
            await asyncio.wait_for(call(), PATIENCE)
            each.append(perf_counter() - began)

    await asyncio.gather(*(go_on() for _ in range(at_once)))
    return each


def sdk(target: Target, tool: str, era: str, approver: Person | None = None) -> Lane:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Call]:
        async with connected(target.url, target.token, era, None if approver else yes()) as client:

            async def call() -> None:
                approving = asyncio.create_task(_approve(approver)) if approver else None
                result = await client.call_tool(tool, ARGUMENTS)
                assert isinstance(result, CallToolResult)
                assert not result.is_error, result
                if approving is not None:
                    await approving

            yield call

    return Lane(target, opened)


def raw(target: Target, tool: str, at_once: int) -> Lane:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Call]:
        async with AsyncExitStack() as stack:
            open_ones = [await stack.enter_async_context(wire(target.port, target.token)) for _ in range(at_once)]

            async def call() -> None:
                one = open_ones.pop()
                answer, _ = await one.request("tools/call", name=tool, arguments=ARGUMENTS)
                assert not answer["result"].get("isError"), answer
                open_ones.append(one)

            yield call

    return Lane(target, opened)


async def _approve(bob: Person) -> None:
    """As soon as there is something to approve."""
    waiting = Approval.objects.filter(call__status=Status.WAITING)
    while (found := await waiting.values_list("pk", flat=True).afirst()) is None:  # noqa: ASYNC110 - rows tell nobody
        await asyncio.sleep(0.002)
    answer = await asyncio.to_thread(bob.post, f"/api/approvals/{found}/approve")
    assert answer.status_code == 200, answer.text
