"""What one answer costs while ten other questions are open, and while a hundred thousand are, whoever decides them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from bench import people, sizes
from bench.figures import Figure
from bench.home import ARGUMENTS
from bench.measure import Stopwatch, median, percentile
from hitlchat.accounts import roles
from hitlchat.accounts.models import Role, Token, TokenKind
from hitlchat.gate import decide
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import Approval, DecidedBy, ToolCall, new_id
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, admit, prepare
from tests.conftest import PASSWORD

FEW, MANY, AT_ONCE = sizes.of((10, 100_000, 2000), (2, 20, 10))
WARM, TIMES = sizes.of((5, 40), (1, 2))


@dataclass(frozen=True)
class Person:
    user: User
    token: str

    @classmethod
    def of(cls, user: User) -> "Person":
        return cls(user, Token.make(user, TokenKind.APPROVER))

    def asked(self) -> Approval:
        """A question that the gate itself has put, as any other; none is like another one."""
        arguments = ARGUMENTS | {"order_id": str(new_id())}
        caller = Caller("chat", self.user.pk, self.user.get_username())
        prepared = async_to_sync(prepare)(CallRequest("gated", json.dumps(arguments), caller))
        return admit(prepared).approval


def measure() -> Iterator[Figure]:
    people.ready()
    bob, ann = Person.of(people.bob()), Person.of(User.objects.create_user("ann", password=PASSWORD))
    fill(bob, FEW)
    yield from _figures(f"{FEW} waiting", bob)
    with Stopwatch() as watch:
        fill(ann, MANY)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    yield Figure(f"put {MANY:,} questions on record, for this bench", watch.wall, "s", note=f"{watch.cpu:.0f} s CPU")
    yield from _figures(f"{MANY:,} more of somebody else's", bob)
    yield from _figures(f"{MANY:,} of one's own", ann)
    yield from _figures(f"{MANY:,} of somebody else's that one may decide", let_decide(bob, ann))


def let_decide(approver: Person, requester: Person) -> Person:
    """What waits for `requester` is for approvers to decide from now on, and `approver` is one."""
    roles.give(approver.user, Role.APPROVER)
    ToolCall.objects.filter(caller=requester.user, status=Status.WAITING).update(
        decided_by=DecidedBy.APPROVERS, oversight_digest="of the bench"
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return approver


def _figures(where: str, person: Person) -> Iterator[Figure]:
    for what, way in (("approve", _by_function), ("approve by REST", _by_rest), ("the list by REST", _listed)):
        watches = [_timed(way, person) for _ in range(WARM + TIMES)][WARM:]
        walls, cpus = [one.wall * 1000 for one in watches], [one.cpu * 1000 for one in watches]
        note = f"{median(cpus):.1f} ms CPU here, p95 {percentile(walls, 0.95):.1f} on the wall"
        yield Figure(f"{where}: {what}", median(walls), "ms", note=note)


def _timed(way: Callable[[Person], Callable[[], None]], person: Person) -> Stopwatch:
    work = way(person)
    with Stopwatch() as watch:
        work()
    return watch


def _by_function(person: Person) -> Callable[[], None]:
    approval, actor = person.asked(), Actor(person.user.pk, "session")

    def work() -> None:
        decide.approve(approval.pk, actor, digest=approval.digest)

    return work


def _by_rest(person: Person) -> Callable[[], None]:
    approval, client = person.asked(), _client(person)
    body = json.dumps({"consentDigest": approval.digest})

    def work() -> None:
        response = client.post(f"/api/approvals/{approval.pk}/approve", body, content_type="application/json")
        assert response.status_code == 200, response.content

    return work


@cache
def _client(person: Person) -> Client:
    """One for all requests: a new one sets up the middleware anew, which a server does once."""
    return Client(headers={"Authorization": f"Bearer {person.token}"}, SERVER_NAME="127.0.0.1")


def _listed(person: Person) -> Callable[[], None]:
    """The first page of what waits, which people look at before they answer."""
    client = _client(person)

    def work() -> None:
        assert client.get("/api/approvals").status_code == 200

    return work


def fill(person: Person, count: int) -> None:
    """So many questions like one that the gate put, as rows: one by one it would take half an hour."""
    if not count:
        return
    like = person.asked()
    columns = ToolCall.objects.filter(pk=like.call_id).values().get()
    until = like.call.deadline
    assert until is not None
    for start in range(0, count, AT_ONCE):
        many = range(start, min(start + AT_ONCE, count))
        # Asked one after the other, as they would have been.
        later = [{"id": new_id(), "deadline": until + timedelta(milliseconds=n)} for n in many]
        calls = [ToolCall(**columns | each) for each in later]
        ToolCall.objects.bulk_create(calls)
        Approval.objects.bulk_create(
            Approval(call=call, prompt=like.prompt, disclosure=like.disclosure, digest=like.digest) for call in calls
        )
    assert ToolCall.objects.filter(caller=person.user, status=Status.WAITING).count() >= count
