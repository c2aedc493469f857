"""Events and seals as they are stored, read a page at a time."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from hitlchat.gate.models import AuditEvent, Drop, Seal
from hitlchat.record.commitment import Row, row_hash, salt_of_row, salts
from hitlchat.record.seals import Body, Ranges, digest, within

AT_ONCE = 500
MARK = 16


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def read(*where: Q, most: int | None = None) -> list[Row]:
    """Events as JSON, by id. ValueError: one of them is not even of the right kind."""
    columns = ("pk", "name", "call_id", "actor_id", "means", "at", "text")
    # The text, and not what Django makes of it: that of a changed row may be no JSON.
    rows = AuditEvent.objects.filter(*where).annotate(text=Cast("data", TextField())).order_by("pk")
    return [_row(values) for values in rows.values(*columns)[:most]]


def read_ids(ids: Iterable[int]) -> list[Row]:
    """The same for these ids, however many."""
    left, found = iter(sorted(ids)), []
    while some := list(islice(left, AT_ONCE)):
        found += read(Q(pk__in=some))
    return found


def _row(stored: dict[str, Any]) -> Row:
    return {
        "id": stored["pk"],
        "name": stored["name"],
        "call": str(stored["call_id"]) if stored["call_id"] else None,
        "actor": stored["actor_id"],
        "means": stored["means"],
        "at": iso(stored["at"]),
        "data": json.loads(stored["text"]),
    }


def hashed(row: Row, salt: str) -> bytes:
    """The hash of an event in the batch with this salt."""
    return row_hash(row, salts(salt_of_row(salt, row["id"])))


def marks_of(hashes: Iterable[bytes]) -> str:
    return "".join(each.hex()[:MARK] for each in hashes)


def marks_in(marks: str) -> list[str]:
    return [marks[at : at + MARK] for at in range(0, len(marks), MARK)]


def body_of(seal: Seal) -> Body:
    """What is hashed and signed."""
    return {
        "number": seal.number,
        "first": seal.first,
        "last": seal.last,
        "count": seal.count,
        "gaps": seal.gaps,
        "late": seal.late,
        "watch": seal.watch,
        "root": seal.root,
        "marks": digest(seal.marks),
        "salt": digest(seal.salt),
        "previous": seal.previous,
        "at": iso(seal.sealed_at),
        "key": seal.key_id,
    }


def body_of_drop(drop: Drop, seal: Seal) -> Body:
    return {"number": seal.number, "seal": seal.hash, "at": iso(drop.dropped_at), "key": drop.key_id}


def every_seal(start: int = 1, last: int | None = None) -> Iterator[Seal]:
    """In order, a page at a time: also those that are sealed meanwhile."""
    rows = Seal.objects.filter(number__lte=last) if last is not None else Seal.objects.all()
    at = start - 1
    while page := list(rows.filter(number__gt=at).order_by("number")[:AT_ONCE]):
        yield from page
        at = page[-1].number


def in_ranges(ranges: Ranges) -> Iterator[Q]:
    """So many conditions that each is short enough for a statement."""
    left = iter(ranges)
    while some := list(islice(left, 50)):
        found = Q()
        for first, last in some:
            found |= Q(pk__range=(first, last))
        yield found


def newest_id(rows: "QuerySet[AuditEvent] | None" = None) -> int:
    events = AuditEvent.objects.all() if rows is None else rows
    return events.order_by("-pk").values_list("pk", flat=True).first() or 0


def sealed(seal: Seal) -> list[Row]:
    """The events of a batch in the order of their hashes, as far as they are there."""
    wanted = Q(pk__range=(seal.first, seal.last))
    return read_ids(seal.late) + [row for row in read(wanted) if not within(row["id"], seal.gaps)]
