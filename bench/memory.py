"""What waiting costs the server process: an approval of a parked run, and a page that is open beside it."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from uuid import UUID

import httpx2

from bench import people, sizes
from bench.children import pid, serving
from bench.figures import Figure
from bench.measure import rss
from bench.page import open_page
from hitlchat.agent.models import Conversation, Run, RunStatus
from tests.processes import Person, Server
from tests.waiting import until

# Parked while the server warms up (its heap grows for about a thousand), parked while it is watched, open pages.
WARM, WATCHED, PAGES = sizes.of((1200, 1000, 400), (8, 8, 8))
AT_ONCE = 8
# For each run that is parked, on a slow machine.
SECONDS_A_RUN = 0.2
GOAL_KB = 45


def measure() -> Iterator[Figure]:
    people.ready()
    talks = Conversation.objects.bulk_create(
        Conversation(owner=people.bob(), title="waits", tools=["gated"]) for _ in range(WARM + WATCHED)
    )
    ids = [talk.pk for talk in talks]
    with serving() as server:
        bob = server.sign_in("bob")
        asyncio.run(_park(server, bob, ids[:WARM]))
        before = rss(pid(server))
        asyncio.run(_park(server, bob, ids[WARM:]))
        parked = rss(pid(server)) - before
    # Another process: in this one, pages would live in what the parked runs needed and gave back.
    with serving() as server:
        bob = server.sign_in("bob")
        asyncio.run(_opened(server, bob, ids[: PAGES // 8]))
        page = asyncio.run(_opened(server, bob, ids[PAGES : 2 * PAGES]))
    note = f"growth of {parked / 2**20:.1f} MB over {WATCHED:,}, from {before / 2**20:.0f} MB"
    yield Figure("a waiting approval of a parked run", parked / WATCHED / 1024, "KB", goal=1, note=note)
    yield Figure("an open page with a card that waits", page, "KB", goal=GOAL_KB, note=f"of {PAGES} pages")


async def _park(server: Server, person: Person, ids: list[UUID]) -> None:
    """Have each conversation ask for a call; returns once all of them wait."""
    headers = {"X-CSRFToken": person.csrf, "Origin": server.url}
    some = asyncio.Semaphore(AT_ONCE)
    async with httpx2.AsyncClient(base_url=server.url, cookies=person.cookies, headers=headers, timeout=60) as http:

        async def say(talk: UUID) -> None:
            async with some:
                answer = await http.post(f"/api/conversations/{talk}/messages", json={"content": "call gated"})
                assert answer.status_code == 202, answer.text

        await asyncio.gather(*map(say, ids))
    waiting = Run.objects.filter(conversation__in=ids, parked=True, status=RunStatus.WAITING)
    patience = 60 + SECONDS_A_RUN * len(ids)
    await asyncio.to_thread(until, lambda: waiting.count() == len(ids), "all of them wait", seconds=patience)


async def _opened(server: Server, person: Person, ids: list[UUID]) -> float:
    """Kilobytes that the server grows by for each open page."""
    before = rss(pid(server))
    async with AsyncExitStack() as stack:
        for talk in ids:
            await stack.enter_async_context(open_page(server, person, talk))
        return (rss(pid(server)) - before) / len(ids) / 1024
