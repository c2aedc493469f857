"""Many people at once: all speak in the same moment, and all approve in the same moment. And one of them in as many
chats, where each page shows what waits in the others.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import cycle
from uuid import UUID

from bench import people, sizes
from bench.children import pid, serving_with
from bench.figures import Figure
from bench.measure import cpu, median, percentile
from bench.page import Page, open_page
from bench.people import Visitor
from tests.processes import Server

PEOPLE = sizes.of((1, 50, 200), (1, 2))
CHATS_OF_ONE = sizes.of(50, 2)
ROUNDS = sizes.of(3, 1)
# Seconds until the last of so many has its card.
GOALS = {50: 1.0, 200: 5.0}


@dataclass(frozen=True)
class Round:
    """Seconds from the moment when all speak to each card, and from that when all approve to each end; CPU, too."""

    cards: list[float]
    ends: list[float]
    cpu: float


def measure() -> Iterator[Figure]:
    people.ready()
    for number in PEOPLE:
        crowd = [Visitor.new(f"{number} {name}") for name in range(number)]
        yield from figures(f"{number} people at once", rounds_of(crowd), GOALS.get(number))
    yield from figures(f"{CHATS_OF_ONE} chats of one person at once", rounds_of([Visitor.new("busy")] * CHATS_OF_ONE))


def rounds_of(crowd: list[Visitor], processes: int = 1) -> list[Round]:
    """With each page on one of so many processes. The first round, which warms up, is not among them."""
    talks = [people.conversation(owner=each.user).pk for each in crowd]
    with serving_with(processes) as servers:
        return asyncio.run(_on_pages(servers, crowd, talks))[1:]


async def _on_pages(servers: list[Server], crowd: list[Visitor], talks: list[UUID]) -> list[Round]:
    async with AsyncExitStack() as stack:
        opened = map(open_page, cycle(servers), crowd, talks)
        pages = [await stack.enter_async_context(page) for page in opened]
        return [await a_round(servers, pages) for _ in range(ROUNDS + 1)]


async def a_round(servers: list[Server], pages: list[Page]) -> Round:
    """On all pages at once somebody speaks, is asked, approves, and reads the answer."""
    before = sum(cpu(pid(server)) for server in servers)
    began = time.time()
    await asyncio.gather(*(page.say("call gated") for page in pages))
    cards = await asyncio.gather(*(page.until('id="ask-') for page in pages))
    approved = time.time()
    await asyncio.gather(*(page.approve(card) for page, (card, _) in zip(pages, cards, strict=True)))
    ends = await asyncio.gather(*(page.until('data-run="done"') for page in pages))
    used = sum(cpu(pid(server)) for server in servers) - before
    return Round([came - began for _, came in cards], [came - approved for _, came in ends], used)


def figures(where: str, rounds: list[Round], goal: float | None = None) -> Iterator[Figure]:
    """`goal`: seconds until the last one has its card."""
    for what, each, aim in (
        ("say → card", [one.cards for one in rounds], goal),
        ("yes → answer", [one.ends for one in rounds], None),
    ):
        values = [value for found in each for value in found]
        last = median(max(found) for found in each)
        note = f"p50 {median(values):.2f}, p95 {percentile(values, 0.95):.2f}"
        yield Figure(f"{where}: {what}, the last of them", last, "s", goal=aim, note=note)
    used = median(one.cpu / len(one.ends) for one in rounds) * 1000
    yield Figure(f"{where}: CPU of the server, each turn with its page", used, "ms")
