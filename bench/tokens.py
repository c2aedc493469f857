"""Tokens a second, from a model server that never pauses to the pages that show them."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack

from websockets.asyncio.client import ClientConnection

from bench import people, sizes
from bench.children import child, serving
from bench.figures import Figure
from bench.measure import median
from bench.model_server import token
from bench.page import Page, open_bare, open_page
from hitlchat.agent.models import Conversation
from tests.processes import Person, Server

REPEATS = sizes.of(3, 1)
ONE, MANY = sizes.of((20_000, 50), (200, 2))
# Of one of many chats.
SHARE = sizes.of(1_000, 50)
GOAL = 15_000


def measure() -> Iterator[Figure]:
    people.ready()
    with child("bench.echo") as port:
        bare_one = _median(lambda: _bare(port, 1, ONE))
        bare_many = _median(lambda: _bare(port, MANY, SHARE))
    with serving() as server:
        bob = server.sign_in("bob")
        one = _median(lambda: _chats(server, bob, 1, 1, ONE))
        fan = _median(lambda: _chats(server, bob, 1, MANY, ONE))
        many = _median(lambda: _chats(server, bob, MANY, 1, SHARE))
    yield Figure("one chat, one page", one, "tokens/s", bare_one, GOAL, "more", "floor: a frame a token")
    yield Figure(f"one chat, {MANY} pages: each sees", fan, "tokens/s", bare_many / MANY, better="more")
    yield Figure(f"one chat, {MANY} pages: all together", fan * MANY, "tokens/s", bare_many, GOAL, "more")
    yield Figure(f"{MANY} chats of one page: all together", many, "tokens/s", bare_many, GOAL, "more")


def _median(measured: object) -> float:
    assert callable(measured)
    return median(asyncio.run(measured()) for _ in range(REPEATS))


async def _bare(port: int, sockets: int, count: int) -> float:
    """Frames a second that arrive over all sockets."""
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(open_bare(port)) for _ in range(sockets)]
        start = time.perf_counter()
        await asyncio.gather(*(_frames(one, count) for one in connections))
        return sockets * count / (time.perf_counter() - start)


async def _frames(connection: ClientConnection, count: int) -> None:
    await connection.send(str(count))
    for _ in range(count):
        await connection.recv()


async def _chats(server: Server, person: Person, chats: int, pages: int, count: int) -> float:
    """Tokens a second over all `chats` until all of their pages have the last one; each token counts once a chat."""
    talks: list[Conversation] = []
    for _ in range(chats):
        talks.append(await asyncio.to_thread(people.conversation))
    async with AsyncExitStack() as stack:
        opened = [
            [await stack.enter_async_context(open_page(server, person, one.pk)) for _ in range(pages)] for one in talks
        ]
        start = time.perf_counter()
        await asyncio.gather(*(_chat(group, count) for group in opened))
        return chats * count / (time.perf_counter() - start)


async def _chat(pages: list[Page], count: int) -> None:
    await pages[0].say(f"stream {count}")
    last = token(count - 1).strip()
    await asyncio.gather(*(page.until(last) for page in pages))
