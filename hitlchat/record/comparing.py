"""One batch against its seal: which event was edited, removed, put in or moved."""

from collections.abc import Iterator

from django.db.models import Q

from hitlchat.gate import canonical
from hitlchat.gate.models import AuditEvent, Drop, Seal
from hitlchat.record import rows, tree
from hitlchat.record.commitment import Row
from hitlchat.record.findings import Finding
from hitlchat.record.seals import ids_of, within

UNREADABLE = "is not even of the right kind any more"


def compare(seal: Seal, late: dict[int, int], still_open: int) -> Iterator[Finding]:
    """What is wrong with the events of one batch; nothing if they are those that were sealed.

    `late`: of ids that came late, the batch that has them. `still_open`: from this batch on, what is in a gap has come
    late and will be sealed.
    """
    try:
        there = _there(seal)
    except ValueError:
        yield from _unreadable(seal)
        return
    strangers = [row for row in there if not _belongs(row["id"], seal)]
    for row in strangers:
        if row["id"] not in late and not (seal.number >= still_open and within(row["id"], seal.gaps)):
            words = f"Event {row['id']} was put in: batch {seal.number} was sealed without it."
            yield Finding("inserted", words, seal.number, row["id"])
    own = {row["id"]: row for row in there if _belongs(row["id"], seal)}
    yield from _against(seal, own)


def left_over(seal: Seal, late: dict[int, int]) -> Iterator[Finding]:
    """Events in a batch that was dropped."""
    for event_id in AuditEvent.objects.filter(pk__range=(seal.first, seal.last)).values_list("pk", flat=True):
        if late.get(event_id, seal.number) == seal.number:
            words = f"Event {event_id} was put in: batch {seal.number} was dropped."
            yield Finding("inserted", words, seal.number, event_id)


def _against(seal: Seal, own: dict[int, Row]) -> Iterator[Finding]:
    expected, marks = list(sealed_ids(seal)), rows.marks_in(seal.marks)
    missing = [event_id for event_id in expected if event_id not in own]
    if missing:
        # Retention may have been here since.
        if not Drop.objects.filter(pk=seal.number).exists():
            yield from (_missing(seal, event_id) for event_id in missing)
        return
    hashes = {event_id: _hash(own[event_id], seal) for event_id in expected}
    if tree.root(list(hashes.values())).hex() == seal.root:
        return
    wrong = [
        event_id for event_id, mark in zip(expected, marks, strict=False) if hashes[event_id].hex()[: rows.MARK] != mark
    ]
    if not wrong:
        yield Finding("edited", f"An event of batch {seal.number} is not as it was sealed.", seal.number)
        return
    yield _changed(seal, own[wrong[0]], dict(zip(marks, expected, strict=False)))
    yield from (_edited(seal, event_id) for event_id in wrong[1:])


def sealed_ids(seal: Seal) -> Iterator[int]:
    """The ids of a batch's events, in the order of their hashes."""
    return ids_of(rows.body_of(seal))


def _there(seal: Seal) -> list[Row]:
    """Everything in the range of ids, and what came late."""
    return rows.read_ids(seal.late) + rows.read(Q(pk__range=(seal.first, seal.last)))


def _belongs(event_id: int, seal: Seal) -> bool:
    if seal.first <= event_id <= seal.last:
        return not within(event_id, seal.gaps)
    return event_id in seal.late


def _hash(row: Row, seal: Seal) -> bytes:
    try:
        return rows.hashed(row, seal.salt)
    except canonical.NotJson:
        return bytes(32)


def _changed(seal: Seal, row: Row, ids: dict[str, int]) -> Finding:
    """Edited, or what another event was?"""
    for event_id in ids.values():
        if event_id != row["id"] and ids.get(_hash({**row, "id": event_id}, seal).hex()[: rows.MARK]) == event_id:
            words = f"Event {row['id']} was reordered: what it says was sealed as event {event_id}."
            return Finding("reordered", words, seal.number, row["id"])
    return _edited(seal, row["id"])


def _edited(seal: Seal, event_id: int) -> Finding:
    words = f"Event {event_id} was edited: it is not as batch {seal.number} sealed it."
    return Finding("edited", words, seal.number, event_id)


def _missing(seal: Seal, event_id: int) -> Finding:
    words = f"Event {event_id} is missing: batch {seal.number} was sealed with it."
    return Finding("missing", words, seal.number, event_id)


def _unreadable(seal: Seal) -> Iterator[Finding]:
    for event_id in sealed_ids(seal):
        try:
            rows.read(Q(pk=event_id))
        except ValueError:
            words = f"Event {event_id} was edited: it {UNREADABLE}."
            yield Finding("edited", words, seal.number, event_id)
