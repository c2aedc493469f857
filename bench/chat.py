"""The chat as a person feels it: the first token, a long conversation opened and gone on with, a long list."""

import asyncio
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import httpx2
from django.utils import timezone

from bench import people, sizes, tokens
from bench.children import model_server, serving
from bench.figures import Figure
from bench.measure import median
from bench.model_server import token
from bench.page import open_page
from hitlchat.agent import search
from hitlchat.agent.models import Conversation
from tests.processes import Person, Server

REPEATS: Final = sizes.of(15, 1)
# Gated turns of four messages each.
SHORT, LONG = 2, sizes.of(500, 5)
LISTED = sizes.of(5_000, 100)
TOKENS = sizes.of(10_000, 100)
# Chats in which an answer streams at the same time, and how long each is.
CHATS, TOKENS_EACH = sizes.of((50, 1_000), (2, 100))

# Of milliseconds: what nobody feels beside the wait for the model, and what a person takes for at once.
OVER_BARE_MS, AT_ONCE_MS = 100, 200
# The same of many chats at once, which wait for each other.
OVER_BARE_CROWD_MS = 1_000
# After so many messages a token may cost a quarter more.
LONG_SHARE = 0.8


@dataclass(frozen=True)
class Crowd:
    """Answers that streamed at once: all their tokens in a second, and the median of milliseconds to the first one."""

    speed: float
    first: float


def measure() -> Iterator[Figure]:
    people.ready()
    short, long = people.conversation(SHORT), people.conversation(LONG)
    bare = _bare()
    with serving() as server:
        bob = server.sign_in("bob")
        first = asyncio.run(_first_tokens(server, bob, short))
        after, goal = f"after {LONG * 4:,} messages", bare + OVER_BARE_MS
        yield Figure("first token on the page", first, "ms", bare, goal, note=_times(first, bare))
        yield Figure(f"first token {after}", asyncio.run(_first_tokens(server, bob, long)), "ms", first, goal)
        speed = asyncio.run(_speed(server, bob, short))
        later = asyncio.run(_speed(server, bob, long))
        yield Figure("tokens, one chat", speed, "tokens/s", goal=tokens.GOAL, better="more")
        yield Figure(f"tokens {after}", later, "tokens/s", speed, speed * LONG_SHARE, "more")
        yield from _crowd(server, bob)
        opened = _get(bob, f"/chat/{short.pk}")
        took = _get(bob, f"/chat/{long.pk}")
        yield Figure(f"opening a conversation of {LONG * 4:,} messages", took, "ms", opened, AT_ONCE_MS)
        few = _get(bob, "/chat/threads")
        with _listed(LISTED):
            for what, path in (
                (f"the list of {LISTED:,} conversations", ""),
                (f"a search in {LISTED:,}", "?search=parcel+49"),
            ):
                yield Figure(what, _get(bob, f"/chat/threads{path}"), "ms", few, AT_ONCE_MS)


def _times(value: float, bare: float) -> str:
    return f"{value / bare:.1f} times the bare model server's, which is the floor"


def _crowd(server: Server, bob: Person) -> Iterator[Figure]:
    """So many chats at once, beside as many requests straight to the model server."""
    with model_server() as model:
        bare = asyncio.run(_together([_stream(model["OPENAI_BASE_URL"]) for _ in range(CHATS)]))
    talks = [people.conversation(SHORT) for _ in range(CHATS)]
    felt = asyncio.run(_together([_page(server, bob, talk) for talk in talks]))
    goal, note = bare.first + OVER_BARE_CROWD_MS, _times(felt.first, bare.first)
    yield Figure(f"first token, {CHATS} chats at once", felt.first, "ms", bare.first, goal, note=note)
    said = f"the bare model server writes {bare.speed / felt.speed:.1f} times as many"
    yield Figure(f"tokens, {CHATS} chats at once", felt.speed, "tokens/s", bare.speed, tokens.GOAL, "more", said)


async def _together(answers: list[Awaitable[float]]) -> Crowd:
    """Wait for answers that each say how many seconds their first token took."""
    start = time.perf_counter()
    firsts = await asyncio.gather(*answers)
    return Crowd(CHATS * TOKENS_EACH / (time.perf_counter() - start), median(firsts) * 1000)


async def _stream(base_url: str) -> float:
    body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": f"stream {TOKENS_EACH}"}]}
    start, took = time.perf_counter(), 0.0
    client = httpx2.AsyncClient(timeout=120, trust_env=False)
    async with client as http, http.stream("POST", f"{base_url}/chat/completions", json=body) as answer:
        async for line in answer.aiter_lines():
            if not took and token(0).strip() in line:
                took = time.perf_counter() - start
    return took


async def _page(server: Server, bob: Person, talk: Conversation) -> float:
    async with open_page(server, bob, talk.pk) as page:
        start = time.perf_counter()
        await page.say(f"stream {TOKENS_EACH}")
        await page.until(token(0).strip())
        took = time.perf_counter() - start
        await page.until(token(TOKENS_EACH - 1).strip())
    return took


def _bare() -> float:
    """Milliseconds to the first token straight from the model server."""
    with model_server() as model, httpx2.Client(timeout=30, trust_env=False) as http:
        url = f"{model['OPENAI_BASE_URL']}/chat/completions"
        body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": "stream 5"}]}
        return median(_until_first(http, url, body) for _ in range(REPEATS)) * 1000


def _until_first(http: httpx2.Client, url: str, body: dict[str, object]) -> float:
    start = time.perf_counter()
    with http.stream("POST", url, json=body) as answer:
        for line in answer.iter_lines():
            if token(0).strip() in line:
                return time.perf_counter() - start
    raise AssertionError("the model server sent no token")


async def _first_tokens(server: Server, person: Person, talk: Conversation) -> float:
    found = []
    async with open_page(server, person, talk.pk) as page:
        for _ in range(REPEATS):
            start = time.perf_counter()
            await page.say("stream 5")
            await page.until(token(0).strip())
            found.append(time.perf_counter() - start)
            await page.until_over()
    return median(found) * 1000


async def _speed(server: Server, person: Person, talk: Conversation) -> float:
    async with open_page(server, person, talk.pk) as page:
        start = time.perf_counter()
        await page.say(f"stream {TOKENS}")
        await page.until(token(TOKENS - 1).strip())
        took = time.perf_counter() - start
        await page.until_over()
    return TOKENS / took


def _get(person: Person, path: str) -> float:
    found = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        assert person.get(path).status_code == 200
        found.append(time.perf_counter() - start)
    return median(found) * 1000


@contextmanager
def _listed(count: int) -> Iterator[None]:
    now = timezone.now()
    made = Conversation.objects.bulk_create(
        Conversation(owner=people.bob(), title=f"Where is parcel {number}?", created_at=now, updated_at=now)
        for number in range(count)
    )
    for each in made:
        search.note_title(each.pk, each.title)
    yield
    Conversation.objects.filter(pk__in=[each.pk for each in made]).delete()
