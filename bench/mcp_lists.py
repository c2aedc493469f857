"""What it costs to read the list of /mcp, next to one of the same tools by the bare SDK."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter

from bench import sizes
from bench.children import child_process, pid
from bench.figures import Figure
from bench.home import SCHEMA
from bench.lanes import ROUNDS, Target
from bench.measure import cpu, median
from bench.wire import Wire, wire
from hitlchat.gate.models import HitlMode, Tool
from tests.processes import Server

# Tools in each round, in as many readings as that takes.
LISTED = sizes.of(1000, 10)


@dataclass
class Reading:
    """Milliseconds, a value for each round, and bytes."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    size: int = 0


def listed(count: int, server: Server, token: str) -> Iterator[Figure]:
    """All pages, one after the other."""
    _have(count)
    with child_process("bench.bare", str(count)) as begun:
        ours, bare = Target(pid(server), server.port, token), Target(begun.pid, begun.port)
        read, least = asyncio.run(_read(ours, bare, count))
    note = f"{read.size / 1024:,.0f} KB; bare {least.size / 1024:,.0f} KB"
    yield Figure(f"list of {count:,} tools: wall", median(read.wall), "ms", median(least.wall), note=note)
    yield Figure(f"list of {count:,} tools: CPU", median(read.cpu), "ms", median(least.cpu))


async def _read(ours: Target, bare: Target, count: int) -> list[Reading]:
    readings = []
    for target in (ours, bare):
        reading, times = Reading(), max(1, LISTED // count)
        async with wire(target.port, target.token) as connection:
            _, reading.size = await _pages(connection)
            for _ in range(ROUNDS):
                used, began = cpu(target.pid), perf_counter()
                for _ in range(times):
                    found, _ = await _pages(connection)
                    assert found == count
                reading.wall.append((perf_counter() - began) / times * 1000)
                reading.cpu.append((cpu(target.pid) - used) / times * 1000)
        readings.append(reading)
    return readings


async def _pages(connection: Wire) -> tuple[int, int]:
    """How many tools, in how many bytes."""
    found, size = 0, 0
    following: dict[str, str] = {}
    while True:
        answer, came = await connection.request("tools/list", **following)
        found, size = found + len(answer["result"]["tools"]), size + came
        if (cursor := answer["result"].get("nextCursor")) is None:
            return found, size
        following = {"cursor": cursor}


def _have(count: int) -> None:
    """So many published tools, with those that are there."""
    there = Tool.objects.filter(published=True).count()
    Tool.objects.bulk_create(
        Tool(
            name=f"other_{number}",
            description="Give a customer money back for an order.",
            hitl_mode=HitlMode.DISABLED,
            input_schema=SCHEMA,
            source="bench",
            risk_level=2,
            published=True,
        )
        for number in range(there, count)
    )
