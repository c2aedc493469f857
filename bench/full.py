"""A full house: very many calls wait in the store, very many pages are open, and many people ask at once, some of whom
have a page that never reads.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from bench import deciding, load, people, sizes
from bench.children import pid, serving
from bench.figures import Figure
from bench.measure import median, rss
from bench.page import Page, open_page
from bench.people import Visitor
from tests.conftest import PASSWORD
from tests.processes import Server

WAITING, PAGES, CHATS, DEAF = sizes.of((100_000, 2000, 200, 50), (20, 8, 2, 1))
ROUNDS = sizes.of(3, 1)
OPENED_AT_ONCE = 16
GOAL_PAGE_KB = 45
GOAL_CARD_SECONDS = 5.0


def measure() -> Iterator[Figure]:
    people.ready()
    deciding.fill(deciding.Person.of(User.objects.create_user("ann", password=PASSWORD)), WAITING)
    speakers, readers = (
        [Visitor.new(f"{what} {name}") for name in range(of)] for what, of in (("speaker", CHATS), ("reader", PAGES))
    )
    with serving() as server:
        yield from asyncio.run(_house(server, speakers, readers))


async def _house(server: Server, speakers: list[Visitor], readers: list[Visitor]) -> list[Figure]:
    async with AsyncExitStack() as stack:
        chats = await _opened(stack, server, speakers)
        before, began = rss(pid(server)), time.monotonic()
        await _opened(stack, server, readers)
        seconds, grown = time.monotonic() - began, rss(pid(server)) - before
        for page in await _opened(stack, server, speakers[:DEAF]):
            page.connection.transport.pause_reading()
            stack.callback(page.connection.transport.resume_reading)
        # The first one warms up.
        await load.a_round([server], chats)
        before = rss(pid(server))
        rounds = [await load.a_round([server], chats) for _ in range(ROUNDS)]
        more = (rss(pid(server)) - before) / ROUNDS / 2**20
    turns = median(CHATS / max(one.ends) for one in rounds)
    where = f"{CHATS} people at once beside them"
    return [
        Figure(f"open {PAGES:,} pages", seconds, "s", note=f"{WAITING:,} calls wait in the store"),
        Figure("an open page", grown / PAGES / 1024, "KB", goal=GOAL_PAGE_KB),
        *load.figures(where, rounds, GOAL_CARD_SECONDS),
        Figure(f"{where}: decided, run and answered", turns, "turns/s"),
        Figure(f"{where}: memory, each round more", more, "MB", note=f"{DEAF} have a second page that never reads"),
    ]


async def _opened(stack: AsyncExitStack, server: Server, visitors: list[Visitor]) -> list[Page]:
    """A page of each, with a conversation of its own."""
    some = asyncio.Semaphore(OPENED_AT_ONCE)

    async def opened(person: Visitor) -> Page:
        talk = await sync_to_async(people.conversation)(owner=person.user)
        async with some:
            return await stack.enter_async_context(open_page(server, person, talk.pk))

    return await asyncio.gather(*map(opened, visitors))
