"""Waiting for questions at the console: each is shown as it comes, and asked about where somebody can answer."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

from django.db.models import Max, QuerySet

from hitlchat.approvals.console import looking
from hitlchat.gate.models import Approval, AuditEvent
from hitlchat.gate.status import Status

LOOK_EVERY_SECONDS = 1.5
# What comes about by time alone, or was committed late, leaves no newer event.
LOOK_ANYWAY_SECONDS = 15.0

Key = tuple[UUID, int]


@dataclass
class Watch:
    """Which of `rows`, a query of what waits, has been told of already."""

    rows: Callable[[], QuerySet[Approval]]
    seen: set[Key] = field(default_factory=set)
    _latest: int | None = -1
    _looked: float = 0.0

    def next(self) -> Approval | None:
        """The most urgent question that was not told of; None while there is none. Between events it costs one look at
        the end of an index."""
        if not self._is_due():
            return None
        for key in islice(looking.unseen(self.rows(), self.seen), 1):
            self.seen.add(key)
            # There may be more.
            self._looked = 0.0
            return looking.approval(key[0])
        return None

    def events(self) -> Iterator[dict[str, object]]:
        """What began and what ended to wait since it was asked last, as JSON objects."""
        if not self._is_due():
            return
        now = set(looking.unseen(self.rows(), set()))
        for found, round_ in _read(self.seen - now):
            yield {"event": _end(found, round_), **looking.line(found)}
        for found, _ in _read(now - self.seen):
            yield {"event": "waiting", **looking.line(found)}
        self.seen = now

    def _is_due(self) -> bool:
        latest = AuditEvent.objects.aggregate(latest=Max("pk"))["latest"]
        is_due = latest != self._latest or time.monotonic() - self._looked > LOOK_ANYWAY_SECONDS
        if is_due:
            self._latest, self._looked = latest, time.monotonic()
        return is_due


def _read(keys: set[Key]) -> Iterator[tuple[Approval, int]]:
    """Each with the round that was meant, in the order in which they were asked."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), looking.AT_ONCE):
        rounds = dict(ordered[start : start + looking.AT_ONCE])
        for found in looking.among([*rounds]):
            yield found, rounds[found.pk]


def _end(found: Approval, round_: int) -> str:
    """Whatever became of the call afterwards; `others`: it waits on, for other people."""
    if found.call.status == Status.WAITING:
        return "again" if found.call.round > round_ else "others"
    return looking.ENDS.get(Status(found.call.status), "approved")


def rest(seconds: float = LOOK_EVERY_SECONDS) -> None:
    time.sleep(seconds)
