"""The round trip of a page: the server asks and the page has it, a click and the tool starts."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from uuid import UUID

from bench import browser, people, sizes
from bench.children import child, serving
from bench.figures import Figure
from bench.measure import median, percentile
from bench.page import Page, open_bare, open_page
from hitlchat.agent.models import Conversation
from hitlchat.gate.models import ToolCall
from tests.processes import Person, Server

ALONE, MANY, ACTIONS = sizes.of((30, 50, 4), (2, 2, 1))
PAUSE, ECHOES = sizes.of((1.0, 300), (0.1, 10))
GOAL_ASK_MS, GOAL_CLICK_MS = 1.4, 2.4


@dataclass
class Trips:
    """Milliseconds."""

    asks: list[float] = field(default_factory=list)
    clicks: list[float] = field(default_factory=list)


def measure() -> Iterator[Figure]:
    people.ready()
    with child("bench.echo") as port:
        echo = asyncio.run(_echo(port))
    with serving() as server:
        bob = server.sign_in("bob")
        alone = asyncio.run(_sessions(server, bob, [people.conversation()], ALONE, pause=0.0))
        many = asyncio.run(_sessions(server, bob, [people.conversation() for _ in range(MANY)], ACTIONS, pause=PAUSE))
        shown = browser.trips(server, bob)
    yield Figure("bare websocket echo through Daphne, there and back: p50", echo, "ms")
    yield from _figures("one session", alone, echo, (GOAL_ASK_MS, GOAL_CLICK_MS))
    yield from _figures(f"{MANY} sessions, an action a second each", many, echo, (None, None))
    yield from browser.figures(shown)


def _figures(where: str, trips: Trips, echo: float, goals: tuple[float | None, float | None]) -> Iterator[Figure]:
    for what, values, goal in (
        ("server asks → page has it", trips.asks, goals[0]),
        ("click → tool starts", trips.clicks, goals[1]),
    ):
        note = f"p95 {percentile(values, 0.95):.1f}, most {max(values):.1f}, of {len(values)}"
        yield Figure(f"{where}: {what}: p50", median(values), "ms", echo / 2, goal, note=note)


async def _echo(port: int) -> float:
    times = []
    async with open_bare(port) as connection:
        for _ in range(ECHOES):
            start = time.perf_counter()
            await connection.send("x" * 64)
            await connection.recv()
            times.append(time.perf_counter() - start)
    return median(times) * 1000


async def _sessions(server: Server, person: Person, talks: list[Conversation], actions: int, *, pause: float) -> Trips:
    """People who ask for a call and approve it, `actions` times each."""
    trips = Trips()
    async with AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(open_page(server, person, talk.pk)) for talk in talks]
        late = [pause * number / len(pages) for number in range(len(pages))]
        await asyncio.gather(
            *(_session(page, trips, actions, pause, wait) for page, wait in zip(pages, late, strict=True))
        )
    return trips


async def _session(page: Page, trips: Trips, actions: int, pause: float, wait: float) -> None:
    await asyncio.sleep(wait)
    for number in range(actions + 1):
        await page.say("think gated")
        card, came = await page.until('id="ask-')
        # People take their time; and whatever the server still does about the question is over.
        await asyncio.sleep(max(pause / 2, 0.05))
        clicked = time.time()
        await page.approve(card)
        await page.until('data-run="done"')
        call = await _call(card)
        if number:  # the first one warms up
            trips.asks.append((came - call.created_at.timestamp()) * 1000)
            trips.clicks.append((call.result["at"] - clicked) * 1000)
        await asyncio.sleep(pause / 2)


async def _call(card: str) -> ToolCall:
    approval = UUID(card.partition('id="ask-')[2][:36])
    return await ToolCall.objects.aget(approval=approval)
