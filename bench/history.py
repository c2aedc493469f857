"""What the history costs with a hundred thousand calls on record: pages, filtered or not, one call, and the export."""

import tracemalloc
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from bench import people, sizes
from bench.deciding import Person
from bench.figures import Figure
from bench.measure import Stopwatch, median, percentile
from hitlchat.gate import decide
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, CallerKind, Decision, ToolCall, new_id
from hitlchat.gate.status import Status
from tests.conftest import PASSWORD

MANY, AT_ONCE = sizes.of((100_000, 2000), (200, 100))
WARM, TIMES = sizes.of((2, 9), (0, 1))
# Of so many calls one is: unknown, of another tool, of the highest risk, answered in a hurry, by somebody else.
RARE = sizes.of(5000, 10)

FILTERS = {
    "no filter": "",
    "what succeeded, which is most": "outcome=succeeded",
    "outcome unknown, 20 of them": "outcome=unknown",
    "ran without being asked, half": "outcome=unasked",
    "one tool, 20 calls": "tool=rare",
    "risk L5, 20 calls": "risk=5",
    "an MCP client, 20 calls": "caller=mcp",
    "rule, 20 calls": "rule=rare",
    "decided by one person, nearly all": "decider=bob",
    "decided by one person, 10 calls": "decider=ann",
    "hurried, 10 calls": "hurried=on",
    "three days of a year": "since={since}&until={until}",
    "of nobody, and so none": "person=nobody-here",
}


def measure() -> Iterator[Figure]:
    people.ready()
    bob, ann = people.bob(), User.objects.create_user("ann", password=PASSWORD)
    alice = User.objects.create_superuser("alice", password=PASSWORD)
    with Stopwatch() as watch:
        _fill(Person.of(bob), ann)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    yield Figure(f"put {MANY:,} calls on record, for this bench", watch.wall, "s", note=f"{watch.cpu:.0f} s CPU")
    for who, user in (("administrator", alice), ("whose calls they are", bob)):
        yield from _pages(who, _signed_in(user))
    yield from _exports(_signed_in(alice))


def _signed_in(user: User) -> Client:
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user)
    return client


def _pages(who: str, client: Client) -> Iterator[Figure]:
    day = timezone.now().date() - timedelta(days=100)
    days = {"since": str(day), "until": str(day + timedelta(days=2))}
    for words, query in FILTERS.items():
        yield _figure(f"{who}: page, {words}", client, f"/history/?{query.format(**days)}")
    middle = ToolCall.objects.order_by("created_at").values_list("pk", flat=True)[MANY // 2]
    yield _figure(f"{who}: page, in the middle of all", client, f"/history/?before={middle}")
    yield _figure(f"{who}: one call", client, f"/history/{middle}")
    yield _figure(f"{who}: 50 by REST", client, "/api/calls?scope=all")


def _figure(what: str, client: Client, path: str) -> Figure:
    def work() -> None:
        response = client.get(path)
        assert response.status_code == 200, response.content[:500]

    walls = [_timed(work) for _ in range(WARM + TIMES)][WARM:]
    return Figure(what, median(walls), "ms", note=f"p95 {percentile(walls, 0.95):.1f}")


def _timed(work: Callable[[], None]) -> float:
    with Stopwatch() as watch:
        work()
    return watch.wall * 1000


def _exports(client: Client) -> Iterator[Figure]:
    for form in ("csv", "jsonl"):
        with Stopwatch() as first:
            response: Any = client.post("/history/export", {"format": form})
            pieces = iter(response.streaming_content)
            size = len(next(pieces))
        with Stopwatch() as rest:
            size += sum(len(piece) for piece in pieces)
        note = f"{size / 2**20:.0f} MiB, first byte after {first.wall * 1000:.0f} ms, {rest.cpu:.1f} s CPU"
        yield Figure(f"export of {MANY:,} calls as {form}", first.wall + rest.wall, "s", note=note)
    tracemalloc.start()
    response = client.post("/history/export", {"format": "jsonl", "tool": "gated"})
    for number, _ in enumerate(response.streaming_content):
        if number == 20:
            break
    yield Figure("most memory while exporting, of Python objects", tracemalloc.get_traced_memory()[1] / 2**20, "MiB")
    tracemalloc.stop()


def _fill(person: Person, ann: User) -> None:
    """Half of them asked about and approved, half run unasked, over a year; rows like one that the gate made."""
    like = person.asked()
    decide.approve(like.pk, Actor(person.user.pk, "session"), digest=like.digest)
    decision: dict[str, Any] = {**Decision.objects.filter(approval=like).values().get()}
    columns: dict[str, Any] = {**ToolCall.objects.filter(pk=like.call_id).values().get()}
    now, step = timezone.now(), timedelta(days=365) / MANY
    for start in range(0, MANY, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, MANY))
        calls = [_call(columns, number, now - step * (MANY - number)) for number in numbers]
        ToolCall.objects.bulk_create(calls)
        shown: dict[str, Any] = {"prompt": like.prompt, "disclosure": like.disclosure, "digest": like.digest}
        asked = [Approval(call=call, created_at=call.created_at, **shown) for call in calls if call.deadline]
        Approval.objects.bulk_create(asked)
        Decision.objects.bulk_create(
            _decision(decision, each, hurried=number % RARE == 0, ann=ann)
            for number, each in enumerate(asked, start // 2)
        )


def _call(columns: dict[str, Any], number: int, at: Any) -> ToolCall:
    rare = number % RARE == 0
    more: dict[str, Any] = {"tool_name": "rare", "risk_level": 5, "caller_kind": CallerKind.MCP, "rule": "rare"}
    return ToolCall(
        **columns
        | {"id": new_id(), "created_at": at, "started_at": at, "settled_at": at, "result": {"sent": True}}
        | {"status": Status.UNKNOWN if rare else Status.FAILED if number % 20 == 0 else Status.SUCCEEDED}
        | ({"deadline": None} if number % 2 else {})
        | (more if rare else {})
    )


def _decision(columns: dict[str, Any], asked: Approval, *, hurried: bool, ann: User) -> Decision:
    own = {"id": new_id(), "approval_id": asked.pk, "decided_at": asked.created_at + timedelta(seconds=20)}
    return Decision(**columns | own | {"hurried": hurried} | ({"person_id": ann.pk} if hurried else {}))
