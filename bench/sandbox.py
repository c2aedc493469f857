"""Authored tools, warm: the whole way through the gate, next to the bare sandbox; many at once; and tools that spin."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from bench import people, sizes
from bench.figures import Figure
from bench.measure import median, percentile
from hitlchat import sandbox
from hitlchat.base.background import background
from hitlchat.base.database import in_db
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tools_studio import authoring
from tools_studio.models import StoreEntry
from tools_studio.spec import Draft

TRIVIAL = "def run(n: int) -> int:\n    return n + 1\n"
HOST_CALL = "from hitl import store\n\n\ndef run(n: int) -> int:\n    return store.get('n') + n\n"
SPINS = "def run(n: int) -> int:\n    while True:\n        n += 1\n"
TIMES, TOGETHER, RUNS_TOGETHER = sizes.of((200, 16, 320), (4, 2, 4))
GOAL_MS = 4.0
SPINNING = sizes.of(4, 1)
IDLE_SECONDS = sizes.of(1, 0.1)
LAG_STEP_SECONDS = 0.005

Work = Callable[[], Awaitable[None]]


def measure() -> Iterator[Figure]:
    for name, code, capabilities in (
        ("successor", TRIVIAL, {}),
        ("kept_sum", HOST_CALL, {"store": True}),
        ("spins", SPINS, {}),
    ):
        tool = authoring.create(Draft(name, code, capabilities=capabilities, hitl_mode="DISABLED"), SYSTEM)
        Tool.objects.filter(pk=tool.pk).update(published=True)
    StoreEntry.objects.create(group="tools", key="n", value=1)
    yield from asyncio.run(_figures())


async def _figures() -> list[Figure]:
    background.adopt(asyncio.get_running_loop())
    caller = await in_db(people.caller)()
    trivial, host = (CallRequest(name, {"n": 1}, caller) for name in ("successor", "kept_sum"))
    figures = [
        *await _pair("trivial tool", _bare(TRIVIAL), _whole(trivial)),
        *await _pair("tool with one host call", _bare(HOST_CALL, _kept()), _whole(host)),
        *await _throughput("trivial tool", _bare(TRIVIAL), _whole(trivial)),
        *await _lag(CallRequest("spins", {"n": 1}, caller)),
    ]
    await background.drain(5)
    background.adopt(None)
    await sandbox.close()
    return figures


async def _pair(what: str, bare: Work, whole: Work) -> list[Figure]:
    """p50 and p99 of both, taken in turns so that both meet the same machine."""
    readings: dict[Work, list[float]] = {bare: [], whole: []}
    for number in range(TIMES + 20):
        for work in (bare, whole):
            began = time.perf_counter()
            await work()
            if number >= 20:  # the first ones warm up
                readings[work].append((time.perf_counter() - began) * 1000)
    floor, all_in = readings[bare], readings[whole]
    low, high = median(floor), percentile(floor, 0.99)
    note = "jailed" if sandbox.walls().jailed else "not jailed here"
    return [
        Figure(f"{what}, bare sandbox: p50", low, "ms", note=note),
        Figure(f"{what}, bare sandbox: p99", high, "ms"),
        Figure(f"{what}, submit, allow, run, record: p50", median(all_in), "ms", low, low + GOAL_MS),
        Figure(f"{what}, submit, allow, run, record: p99", percentile(all_in, 0.99), "ms", high),
    ]


async def _throughput(what: str, bare: Work, whole: Work) -> list[Figure]:
    figures = []
    for many in (1, TOGETHER):
        floor = await _per_second(bare, many)
        label = f"{what}, runs a second, {many} at once"
        figures += [
            Figure(f"{label}: bare sandbox", floor, "/s"),
            Figure(f"{label}: through the gate", await _per_second(whole, many), "/s", floor),
        ]
    return figures


async def _per_second(work: Work, many: int) -> float:
    async def worker() -> None:
        for _ in range(RUNS_TOGETHER // many):
            await work()

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(many)))
    return RUNS_TOGETHER / (time.perf_counter() - began)


async def _lag(spinning: CallRequest) -> list[Figure]:
    """How late a task that only wants to wake every few milliseconds is, while tools burn their time."""

    async def spin() -> None:
        call = await settled((await submit(spinning)).pk, 30)
        assert call.status == Status.FAILED, call.status

    idle = await _lateness(asyncio.sleep(IDLE_SECONDS))
    busy = await _lateness(asyncio.gather(*(spin() for _ in range(SPINNING))))
    label = f"lag of the event loop, {SPINNING} tools spin"
    return [
        Figure("lag of the event loop, idle: p99", percentile(idle, 0.99), "ms"),
        Figure(f"{label}: p99", percentile(busy, 0.99), "ms", percentile(idle, 0.99)),
        Figure(f"{label}: most", max(busy), "ms", max(idle)),
    ]


async def _lateness(work: Awaitable[Any]) -> list[float]:
    done = asyncio.ensure_future(work)
    late = []
    while not done.done():
        due = time.perf_counter() + LAG_STEP_SECONDS
        await asyncio.sleep(LAG_STEP_SECONDS)
        late.append((time.perf_counter() - due) * 1000)
    await done
    return late


def _bare(code: str, grants: dict[str, sandbox.HostFunction] | None = None) -> Work:
    async def run() -> None:
        report = await sandbox.run(code, {"n": 1}, grants=grants)
        assert report.result == 2, report.fault

    return run


def _kept() -> dict[str, sandbox.HostFunction]:
    async def get(key: str) -> int:
        return len(key)

    return {"store.get": get}


def _whole(request: CallRequest) -> Work:
    async def run() -> None:
        call = await settled((await submit(request)).pk, 10)
        assert call.status == Status.SUCCEEDED, call.error
        assert call.result == 2

    return run
