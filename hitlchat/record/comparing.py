"""One batch against its seal: which event was edited, removed, put in or moved."""

from collections.abc import Iterator

from django.db.models import Q

from hitlchat.gate.models import AuditEvent, Drop, Seal
from hitlchat.record import rows, tree
from hitlchat.record.commitment import Row
from hitlchat.record.findings import Finding
from hitlchat.record.seals import ids_of, within


def compare(seal: Seal, there: list[Row], late: dict[int, int], still_open: int) -> Iterator[Finding]:
    """What is wrong with the events of one batch, which are `there`; nothing if they are those that were sealed.

    `late`: of ids that came late, the batch that has them. `still_open`: from this batch on, what is in a gap has come
    late and will be sealed.
    """
    strangers = [row for row in there if not _belongs(row["id"], seal)]
    for row in strangers:
        if row["id"] not in late and not (seal.number >= still_open and within(row["id"], seal.gaps)):
            words = f"Event {row['id']} was put in: batch {seal.number} was sealed without it."
            yield Finding("inserted", words, seal.number, row["id"])
    own = {row["id"]: row for row in there if _belongs(row["id"], seal)}
    broken = list(_against(seal, own))
    yield from broken
    named = {each.event for each in broken}
    yield from (_unreadable(seal, row) for row in own.values() if rows.RAW in row and row["id"] not in named)


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


def there(seal: Seal) -> list[Row]:
    """Everything in the range of ids, and what came late."""
    return rows.read_ids(seal.late) + rows.read(Q(pk__range=(seal.first, seal.last)))


def _belongs(event_id: int, seal: Seal) -> bool:
    if seal.first <= event_id <= seal.last:
        return not within(event_id, seal.gaps)
    return event_id in seal.late


def _hash(row: Row, seal: Seal) -> bytes:
    return rows.hashed(row, seal.salt, rows.form_of(seal))


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


def _unreadable(seal: Seal, row: Row) -> Finding:
    words = f"Event {row['id']} cannot be read as an event, and was sealed as such in batch {seal.number}."
    return Finding("unreadable", words, seal.number, row["id"])
