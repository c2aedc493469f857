"""The inbox with ten calls waiting, and with a hundred thousand: its page, its refresh, the count that every page has,
and what the socket reads for an event.
"""

from collections.abc import Callable, Iterator
from functools import partial

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from bench import people, sizes
from bench.deciding import FEW, MANY, Person, fill, let_decide
from bench.figures import Figure
from bench.measure import Stopwatch, median, percentile
from hitlchat.approvals.inbox import lines
from hitlchat.approvals.inbox.socket import News
from tests.conftest import PASSWORD

WARM, TIMES = sizes.of((3, 20), (0, 1))
# What a person takes for at once.
GOAL_MS = 200.0


def measure() -> Iterator[Figure]:
    people.ready()
    bob, eve = Person.of(people.bob()), Person.of(User.objects.create_user("eve", password=PASSWORD))
    fill(bob, FEW)
    yield from _figures(f"{FEW} waiting", bob)
    with Stopwatch() as watch:
        fill(eve, MANY)
        _analyze()
    yield Figure(f"put {MANY:,} questions on record, for this bench", watch.wall, "s", note=f"{watch.cpu:.0f} s CPU")
    yield from _figures(f"{MANY:,} more of somebody else's", bob)
    yield from _figures(f"{MANY:,} of one's own", eve)
    approver = let_decide(bob, eve)
    _analyze()
    yield from _figures(f"{MANY:,} of somebody else's that one may decide", approver)


def _analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _figures(where: str, person: Person) -> Iterator[Figure]:
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(person.user)
    listed = lines.of(person.user.pk)
    mark, asked = listed.mark, str(listed.lines[0].approval.call_id)
    ways: dict[str, Callable[[], object]] = {
        "the page": partial(_get, client, "/approvals/"),
        "the page, with a filter that nothing passes": partial(_get, client, "/approvals/?kind=studio"),
        "a refresh that finds nothing new": partial(_get, client, f"/approvals/waiting?was={mark}"),
        "a refresh that lists anew": partial(_get, client, "/approvals/waiting"),
        "the count": partial(lines.count_waiting, person.user.pk),
        "what the socket reads for an event": partial(_looked, client, person, asked),
    }
    for what, way in ways.items():
        watches = [_timed(way) for _ in range(WARM + TIMES)][WARM:]
        walls, cpus = [one.wall * 1000 for one in watches], [one.cpu * 1000 for one in watches]
        note = f"{median(cpus):.1f} ms CPU here, p95 {percentile(walls, 0.95):.1f} on the wall"
        yield Figure(f"{where}: {what}", median(walls), "ms", goal=GOAL_MS, note=note)


def _timed(way: Callable[[], object]) -> Stopwatch:
    with Stopwatch() as watch:
        way()
    return watch


def _get(client: Client, path: str) -> None:
    assert client.get(path).status_code in (200, 204)


def _looked(client: Client, person: Person, asked: str) -> None:
    """With one call that has just been asked about."""
    news = News(person.user.pk, client.session.session_key)
    news.hear([asked])
    assert news.look() is not None
