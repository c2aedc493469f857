"""Many people at once: all chats ask in the same moment, and all are approved in the same moment."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bench import people, sizes
from bench.children import pid, serving
from bench.figures import Figure
from bench.measure import cpu, median, percentile
from bench.page import open_page
from hitlchat.agent.models import Conversation
from tests.processes import Person, Server

CHATS = sizes.of((1, 50, 200), (1, 2))
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
    for chats in CHATS:
        with serving() as server:
            bob = server.sign_in("bob")
            talks = [people.conversation() for _ in range(chats)]
            _, *rounds = asyncio.run(_rounds(server, bob, talks))
        yield from _figures(chats, rounds)


def _figures(chats: int, rounds: list[Round]) -> Iterator[Figure]:
    for what, each, goal in (
        ("say → card", [one.cards for one in rounds], GOALS.get(chats)),
        ("yes → answer", [one.ends for one in rounds], None),
    ):
        values = [value for found in each for value in found]
        last = median(max(found) for found in each)
        note = f"p50 {median(values):.2f}, p95 {percentile(values, 0.95):.2f}"
        yield Figure(f"{chats} chats at once: {what}, the last of them", last, "s", goal=goal, note=note)
    used = median(one.cpu for one in rounds) * 1000 / chats
    yield Figure(f"{chats} chats at once: CPU of the server, each turn with its page", used, "ms")


async def _rounds(server: Server, person: Person, talks: list[Conversation]) -> list[Round]:
    """The first one warms up."""
    async with AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(open_page(server, person, talk.pk)) for talk in talks]
        found = []
        for _ in range(ROUNDS + 1):
            before = cpu(pid(server))
            began = time.time()
            await asyncio.gather(*(page.say("call gated") for page in pages))
            cards = await asyncio.gather(*(page.until('id="ask-') for page in pages))
            approved = time.time()
            await asyncio.gather(*(page.approve(card) for page, (card, _) in zip(pages, cards, strict=True)))
            ends = await asyncio.gather(*(page.until('data-run="done"') for page in pages))
            used = cpu(pid(server)) - before
            found.append(Round([came - began for _, came in cards], [came - approved for _, came in ends], used))
    return found
