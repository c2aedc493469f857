"""Measures what a request costs the server: processor time of its process, over many requests by one browser."""

import time
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User

from bench import people, sizes
from bench.children import pid, serving
from bench.figures import Figure
from bench.measure import cpu
from tests.processes import Person, Server

WARM: Final = sizes.of(5, 1)
TIMES: Final = sizes.of(60, 1)
TURNS: Final = 5
CONVERSATIONS: Final = sizes.of(20, 2)
# Of a page; of what a page asks again and again: less, by what it asks for.
GOAL_MS: Final = 60.0


def measure() -> Iterator[Figure]:
    people.ready()
    # Who sees everything.
    User.objects.filter(pk=people.bob().pk).update(is_superuser=True)
    shown = [people.conversation(TURNS) for _ in range(CONVERSATIONS)][-1].pk
    with serving() as server:
        bob = server.sign_in("bob")
        for what, path, goal in _paths(shown):
            spent, wall = _spent(server, bob, path)
            yield Figure(f"{what}: CPU of the server", spent, "ms", goal=goal, note=f"{wall:.1f} ms on the wall")


def _paths(shown: UUID) -> list[tuple[str, str, float | None]]:
    return [
        ("a probe", "/healthz", None),
        ("a style sheet that is unchanged", "/static/hitlchat/app.css", None),
        ("the list of conversations, nothing new", f"/chat/threads?current={shown}", None),
        ("the page of a conversation", f"/chat/{shown}", GOAL_MS),
        ("the inbox", "/approvals/", GOAL_MS),
        ("the Studio", "/studio/", GOAL_MS),
        ("a conversation by REST", f"/api/conversations/{shown}", None),
    ]


def _spent(server: Server, person: Person, path: str) -> tuple[float, float]:
    """Return the milliseconds of processor time and of the clock that one request takes."""
    for _ in range(WARM):
        answer = person.get(path)
        assert answer.status_code in (200, 204, 304), f"{path}: {answer.status_code}"
    before, began = cpu(pid(server)), time.perf_counter()
    for _ in range(TIMES):
        person.get(path)
    return (cpu(pid(server)) - before) / TIMES * 1000, (time.perf_counter() - began) / TIMES * 1000
