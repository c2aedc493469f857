"""The record: what an event costs with and without sealing beside it, and what sealing, verifying, exporting and
checking a hundred thousand of them take.
"""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connections

from bench import people, sizes
from bench.deciding import Person
from bench.figures import Figure
from bench.measure import Stopwatch, rss
from hitlchat.gate import decide
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import AuditEvent, Seal
from hitlchat.gate.transition import note
from hitlchat.record import exporting, verifying
from hitlchat.record.checking import check
from hitlchat.record.sealing import RecordWorker, seal_all

MANY, AT_ONCE, EVENTS, DECIDED = sizes.of((100_000, 2000, 2000, 20), (200, 100, 50, 2))
# As the events of a call that was asked about.
SPOKE = [{"policy": "mode", "verdict": "ask", "reason": "Asked because this tool asks every time.", "source": "tool"}]
DATA = {"reason": SPOKE[0]["reason"], "spoke": SPOKE, "isAutomatic": False, "digest": "d" * 64, "approval": "a" * 36}


def measure() -> Iterator[Figure]:
    people.ready()
    bare = _writing()
    yield Figure("events a second, nothing sealing", bare, "/s", better="more")
    with _sealing():
        beside = _writing()
    yield Figure("events a second, a keeper sealing beside", beside, "/s", floor=bare, better="more")
    _answer(Person.of(people.bob()))
    seal_all()
    _fill()
    yield _rate("seal", seal_all, goal=5000)
    before = rss(os.getpid())
    yield _rate(
        "verify", _verified, goal=5000, note=lambda: f"{(rss(os.getpid()) - before) / 2**20:.0f} MiB more memory"
    )
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / "record.jsonl"
        yield _rate("export", lambda: exporting.export(to, SYSTEM), goal=2000)
        with to.open("rb") as lines:
            yield _rate(
                "check an exported file", lambda: _checked(lines), note=lambda: f"{to.stat().st_size / 2**20:.0f} MiB"
            )


def _writing() -> float:
    with Stopwatch() as watch:
        for _ in range(EVENTS):
            note(None, "bench.event", actor=SYSTEM, data=DATA)
    return EVENTS / watch.wall


@contextmanager
def _sealing() -> Iterator[None]:
    """A keeper that never rests, which is more than any server has."""
    over = threading.Event()

    def work() -> None:
        keeper = RecordWorker()
        while not over.wait(0.2):
            keeper.look(0.0)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _answer(person: Person) -> None:
    """Some decided calls, so that there are receipts to write."""
    for _ in range(DECIDED):
        approval = person.asked()
        decide.approve(approval.pk, Actor(person.user.pk, "session"), digest=approval.digest)


def _fill() -> None:
    for _ in range(MANY // AT_ONCE):
        made = (AuditEvent(name="bench.event", means="system", data=DATA) for _ in range(AT_ONCE))
        AuditEvent.objects.bulk_create(made)


def _rate(what: str, work: Callable[[], Any], *, goal: float | None = None, note: Callable[[], str] = str) -> Figure:
    sealed = Seal.objects.count()
    with Stopwatch() as watch:
        work()
    batches = Seal.objects.count() - sealed
    said = ", ".join(filter(None, [f"{watch.wall:.1f} s", f"{batches} batches" if batches > 1 else "", note()]))
    return Figure(f"{what}: {MANY:,} events", MANY / watch.wall, "events/s", goal=goal, better="more", note=said)


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


def _verified() -> None:
    found = verifying.verify()
    assert found.is_whole, found.findings[:3]


def _checked(lines: Any) -> None:
    found = check(lines)
    assert found.is_genuine, found.wrong
