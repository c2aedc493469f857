"""The page of insights with a hundred thousand calls on record, for an administrator and for one of many people."""

import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from bench import people, sizes
from bench.figures import Figure
from bench.measure import Stopwatch, median, percentile
from hitlchat.gate.models import Approval, Decision, ToolCall, Verdict, new_id
from hitlchat.gate.status import Status
from hitlchat.insights.figures import PERIODS, Period, count
from tests.conftest import PASSWORD

CALLS, AT_ONCE = sizes.of((100_000, 2000), (200, 100))
TOOLS, PEOPLE, DAYS = 20, 12, 27
WARM, TIMES = sizes.of((2, 10), (1, 2))
GOAL_MS = 300
# Of those that ask: how many are approved, declined, or expire.
OUTCOMES, WEIGHTS = (Status.SUCCEEDED, Status.DECLINED, Status.EXPIRED), (80, 10, 10)


def measure() -> Iterator[Figure]:
    people.ready()
    root = User.objects.create_superuser("insights-root", password=PASSWORD)
    persons = [User.objects.create_user(f"insights-{number}", password=PASSWORD) for number in range(PEOPLE)]
    with Stopwatch() as watch:
        _fill(persons, random.Random(1))
    yield Figure(f"put {CALLS:,} calls on record, for this bench", watch.wall, "s", note=f"{watch.cpu:.0f} s CPU")
    for key, (_, words) in PERIODS.items():
        yield _figure(f"all figures of {words}", partial(count, Period.of(key), None))
    for who, user in (("an administrator", root), ("one of the people", persons[0])):
        client = Client(SERVER_NAME="127.0.0.1")
        client.force_login(user)
        yield _figure(f"the page of 4 weeks, for {who}", partial(_get, client), GOAL_MS)


def _get(client: Client) -> None:
    assert client.get("/insights/").status_code == 200


def _figure(what: str, work: Callable[[], Any], goal: float | None = None) -> Figure:
    walls, cpus = [], []
    for _ in range(WARM + TIMES):
        with Stopwatch() as watch:
            work()
        walls.append(watch.wall * 1000)
        cpus.append(watch.cpu * 1000)
    note = f"{median(cpus[WARM:]):.0f} ms CPU here, p95 {percentile(walls[WARM:], 0.95):.0f} on the wall"
    return Figure(what, median(walls[WARM:]), "ms", goal=goal, note=note)


def _fill(persons: list[User], chance: random.Random) -> None:
    """Seven of ten calls asked, spread evenly over four weeks, with the sizes that calls have."""
    now = timezone.now()
    for _ in range(CALLS // AT_ONCE):
        made = [_call(chance, persons, now) for _ in range(AT_ONCE)]
        asked = [(call, _approval(call)) for call in made if call.deadline]
        ToolCall.objects.bulk_create(made)
        Approval.objects.bulk_create(approval for _, approval in asked)
        Decision.objects.bulk_create(_decision(chance, *each) for each in asked if each[0].status != Status.EXPIRED)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _call(chance: random.Random, persons: list[User], now: datetime) -> ToolCall:
    at, tool, asks = now - timedelta(days=DAYS * chance.random()), chance.randrange(TOOLS), chance.random() < 0.7
    return ToolCall(
        id=new_id(),
        tool_name=f"tool_{tool}",
        source="bench",
        risk_level=tool % 6,
        arguments={"text": "x" * 300},
        status=chance.choices(OUTCOMES, WEIGHTS)[0] if asks else Status.SUCCEEDED,
        caller_kind="chat",
        caller=chance.choice(persons),
        rule="r" * 64,
        reason=f"{'Asked' if asks else 'Not asked'} because of what the bench says of tool_{tool}.",
        result={"said": "y" * 200},
        deadline=at + timedelta(minutes=5) if asks else None,
        created_at=at,
        settled_at=at,
    )


def _approval(call: ToolCall) -> Approval:
    shown = {"prompt": "Do it", "arguments": call.arguments, "tool": {"name": call.tool_name}, "more": "z" * 2000}
    return Approval(call=call, prompt="Do it", disclosure=shown, digest="d" * 64, created_at=call.created_at)


def _decision(chance: random.Random, call: ToolCall, approval: Approval) -> Decision:
    shown = call.created_at + timedelta(seconds=2)
    return Decision(
        approval=approval,
        person=call.caller,
        verdict=Verdict.DECLINE if call.status == Status.DECLINED else Verdict.APPROVE,
        means="session",
        digest=approval.digest,
        first_shown_at=shown,
        decided_at=shown + timedelta(seconds=chance.lognormvariate(2.5, 1)),
        hurried=chance.random() < 0.02,
        edited_arguments={"text": "other"} if chance.random() < 0.02 else None,
    )
