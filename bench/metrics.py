"""A look at /metrics with a hundred thousand calls on record and as many that wait: the first ever, and every other."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from bench import people, sizes
from bench.figures import Figure
from bench.measure import Stopwatch, median
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.status import Status

MANY, AT_ONCE, TIMES = sizes.of((100_000, 2000, 20), (200, 100, 2))


def measure() -> Iterator[Figure]:
    people.ready()
    User.objects.filter(pk=people.bob().pk).update(is_superuser=True)
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(people.bob())
    yield Figure("a look at an empty record", _look(client, TIMES), "ms")
    _fill()
    yield Figure(f"the first look at {MANY:,} calls and {2 * MANY:,} events", _look(client, 1), "ms")
    yield Figure("every other, within two minutes' events", _look(client, TIMES), "ms", goal=250)


def _look(client: Client, times: int) -> float:
    taken = []
    for _ in range(times):
        with Stopwatch() as watch:
            assert client.get("/metrics").status_code == 200
        taken.append(watch.wall * 1000)
    return median(taken)


def _fill() -> None:
    """Half of the calls have been declined an hour ago; as many again wait."""
    before = timezone.now() - timedelta(hours=1)
    for _ in range(0, MANY, AT_ONCE):
        _record(Status.DECLINED, before)
        _record(Status.WAITING, before)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


NAMES: Final = {Status.DECLINED: ("call.waiting", "call.declined"), Status.WAITING: ()}


def _record(status: Status, at: datetime) -> None:
    person = people.bob().pk
    usual = {"tool_name": "gated", "source": "studio", "risk_level": 2, "caller_kind": "chat", "caller_id": person}
    calls = [ToolCall(**usual, status=status, deadline=at + timedelta(days=1), created_at=at) for _ in range(AT_ONCE)]
    ToolCall.objects.bulk_create(calls)
    for name in NAMES[status]:
        AuditEvent.objects.bulk_create(AuditEvent(name=name, call=call, means="session", at=at) for call in calls)
