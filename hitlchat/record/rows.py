"""Events and seals as they are stored, read a page at a time."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection
from django.db.models import OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast

from hitlchat.base import canonical
from hitlchat.gate.models import AuditEvent, Drop, Seal
from hitlchat.record import proofs
from hitlchat.record.proofs import Body, Row, digest, within

AT_ONCE = 500
# Beside the columns of a row: the text that its data is stored as; and of one that is no event, all that is stored.
TEXT, RAW = "text", "raw"
# Errors of Django, a driver or JSON at values of the wrong kind.
UNREADABLE = (ValueError, TypeError, AttributeError, OverflowError, RecursionError, DatabaseError)
_COLUMN = {
    "sqlite": "typeof({0}) || ' ' || hex(CAST({0} AS BLOB))",
    "postgresql": "encode(convert_to(CAST({0} AS text), 'UTF8'), 'hex')",
}


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def read(*where: Q, most: int | None = None) -> list[Row]:
    """Return events as JSON, by id. One of the wrong kind has its id and RAW, and raises nothing."""
    found = AuditEvent.objects.filter(*where).order_by("pk")
    try:
        return _rows(found, most)
    except UNREADABLE:
        # One of the rows; or the database itself, which then fails again.
        ids = list(found.values_list("pk", flat=True)[:most])
        return [_one(event_id) for event_id in ids]


def by_call(ids: Iterable[UUID]) -> dict[str, list[Row]]:
    """Return the events of these calls that can be read, by call and in their order."""
    found: dict[str, list[Row]] = {}
    for row in read(Q(call_id__in=list(ids))):
        if is_readable(row):
            found.setdefault(row["call"], []).append(row)
    return found


def readable_values(found: "QuerySet[Any]", columns: Iterable[str]) -> list[dict[str, Any]]:
    """Return these columns of the rows that are of the right kind: who holds the database may have changed others."""
    names = tuple(columns)
    try:
        return list(found.values(*names))
    except UNREADABLE:
        keys = list(found.values_list("pk", flat=True))
        if len(keys) <= 1:
            return []
        return [row for key in keys for row in readable_values(found.filter(pk=key), names)]


def late_batches() -> dict[int, int]:
    """Return for each event that came late the batch that has it."""
    late = Seal.objects.exclude(late=[]).iterator()
    return {event_id: seal.number for seal in late for event_id in seal.late}


def digest_of(value: Any) -> str:
    """Return the digest of a stored value; empty if it is none that could have been stored."""
    try:
        return canonical.sha256(value)
    except canonical.NotJson:
        return ""


def is_readable(row: Row) -> bool:
    return RAW not in row


def _rows(events: "QuerySet[AuditEvent]", most: int | None = None) -> list[Row]:
    """Return the columns of events. Raises: UNREADABLE, if one of the rows is none."""
    # The text, and not the value: that of a changed row may be no JSON.
    texts = events.annotate(text=Cast("data", TextField()))
    columns = texts.values_list("pk", "name", "call_id", "actor_id", "means", "at", "text")
    found: list[Row] = []
    for pk, name, call, actor, means, at, text in columns[:most]:
        if not (isinstance(name, str) and isinstance(means, str) and isinstance(actor, int | None)):
            raise TypeError("not of the types that an event's columns have")
        row = {"id": pk, "name": name, "call": None if call is None else str(call), "actor": actor, "means": means}
        found.append({**row, "at": iso(at), "data": json.loads(text), TEXT: text})
    return found


def _one(event_id: int) -> Row:
    try:
        return _rows(AuditEvent.objects.filter(pk=event_id))[0]
    except UNREADABLE:
        return {"id": event_id, RAW: _raw(event_id)}


def _raw(event_id: int) -> str:
    column = _COLUMN[connection.vendor]
    columns = ", ".join(column.format(name) for name in ("name", "call_id", "actor_id", "means", "at", "data"))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM gate_auditevent WHERE id = %s", [event_id])  # noqa: S608 - names of our own
        return json.dumps(cursor.fetchone())


def hashed(row: Row, seal: Seal) -> bytes:
    """The hash of an event in the batch of this seal. It never raises for the row's sake."""
    salt_of = proofs.salts(proofs.salt_of_row(seal.salt, row["id"]))
    if RAW not in row:
        try:
            return proofs.row_hash(row, salt_of, form_of(seal), text=proofs.text_digest(row[TEXT], salt_of))
        except canonical.NotJson:
            row[RAW] = _raw(row["id"])
    return proofs.unreadable_hash(row["id"], proofs.unreadable_inner(row[RAW], salt_of))


def form_of(seal: Seal) -> int:
    """Return how the events of a batch are hashed."""
    return 1 if seal.format is None else seal.format


def body_of(seal: Seal) -> Body:
    # The first seals state no format.
    form = {"format": seal.format} if seal.format is not None else {}
    names = ("number", "first", "last", "count", "gaps", "late", "watch", "root", "previous")
    columns = form | {name: getattr(seal, name) for name in names}
    digests = {"marks": digest(seal.marks), "salt": digest(seal.salt)}
    return {**columns, **digests, "at": iso(seal.sealed_at), "key": seal.key_id}


def body_of_drop(drop: Drop, seal: Seal) -> Body:
    return {"number": seal.number, "seal": seal.hash, "at": iso(drop.dropped_at), "key": drop.key_id}


def every_seal(start: int = 1, last: int | None = None) -> Iterator[Seal]:
    """Yield the seals in order, a page at a time: also those that are sealed meanwhile."""
    rows = Seal.objects.filter(number__lte=last) if last is not None else Seal.objects.all()
    at = start - 1
    while page := list(rows.filter(number__gt=at).order_by("number")[:AT_ONCE]):
        yield from page
        at = page[-1].number


def newest_id(call_id: UUID | None = None) -> int:
    """Return the id of the newest event, of all or of one call; 0 if there is none."""
    events = AuditEvent.objects.all() if call_id is None else AuditEvent.objects.filter(call_id=call_id)
    return events.order_by("-pk").values_list("pk", flat=True).first() or 0


def stored(seal: Seal) -> list[Row]:
    """Return all rows in the range of ids of a batch, and those that came late."""
    left, found = iter(sorted(seal.late)), list[Row]()
    while some := list(islice(left, AT_ONCE)):
        found += read(Q(pk__in=some))
    return found + read(Q(pk__range=(seal.first, seal.last)))


def sealed(seal: Seal) -> list[Row]:
    """The events of a batch in the order of their hashes, as far as they are there."""
    return [row for row in stored(seal) if row["id"] in seal.late or not within(row["id"], seal.gaps)]


def batches_of(ids: Iterable[int]) -> dict[int, int]:
    """Return the batches by event; one that is not sealed is left out.

    In two statements, or three where one came late.
    """
    by_id = Seal.objects.filter(last__gte=OuterRef("pk")).order_by("last").values("number")[:1]
    rows = AuditEvent.objects.filter(pk__in=list(ids)).order_by().annotate(number=Subquery(by_id))
    found = {event_id: number for event_id, number in rows.values_list("pk", "number") if number is not None}
    gaps = dict(Seal.objects.filter(pk__in=set(found.values())).exclude(gaps=[]).values_list("pk", "gaps"))
    in_gaps = {event_id for event_id, number in found.items() if within(event_id, gaps.get(number, []))}
    if in_gaps:
        first = min(found[event_id] for event_id in in_gaps)
        found = {event_id: number for event_id, number in found.items() if event_id not in in_gaps}
        for number, late in Seal.objects.filter(pk__gt=first).exclude(late=[]).values_list("pk", "late"):
            found |= dict.fromkeys(in_gaps.intersection(late), number)
    return found
