"""Walking the record from its first seal to its last event, a batch at a time: is everything as it was sealed?"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q
from django.utils.translation import gettext_noop

from hitlchat.base.durations import about
from hitlchat.base.sentences import translatable
from hitlchat.gate.models import AuditEvent, Drop, RecordKey, Seal, ToolCall
from hitlchat.gate.sources import altered
from hitlchat.record import calls, keys, proofs, rows, sealing, worker
from hitlchat.record.calls import People
from hitlchat.record.proofs import DROP, SEAL, PublicKey, Row, hash_of, ids_of, is_signed, within
from hitlchat.record.report import Finding, Report
from hitlchat.record.stating import Stated
from hitlchat.record.worker import Mark


def compare(seal: Seal, there: list[Row], late: dict[int, int], still_open: int) -> Iterator[Finding]:
    """Yield what is wrong with the events of one batch, which are `there`; nothing if they are those that were sealed.

    `late`: of ids that came late, the batch that has them. `still_open`: from this batch on, what is in a gap has come
    late and will be sealed.
    """
    strangers = [row for row in there if not _belongs(row["id"], seal)]
    for row in strangers:
        if row["id"] not in late and not (seal.number >= still_open and within(row["id"], seal.gaps)):
            words = translatable(f"Event {row['id']} was put in: batch {seal.number} was sealed without it.")
            yield Finding("inserted", words, seal.number, row["id"])
    own = {row["id"]: row for row in there if _belongs(row["id"], seal)}
    broken = list(_against(seal, own))
    yield from broken
    named = {each.event for each in broken}
    yield from (_unreadable(seal, row) for row in own.values() if rows.RAW in row and row["id"] not in named)


def left_over(seal: Seal, late: dict[int, int]) -> Iterator[Finding]:
    """Yield events that are in a batch that was dropped."""
    for event_id in AuditEvent.objects.filter(pk__range=(seal.first, seal.last)).values_list("pk", flat=True):
        if late.get(event_id, seal.number) == seal.number:
            words = translatable(f"Event {event_id} was put in: batch {seal.number} was dropped.")
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
    if proofs.root(list(hashes.values())).hex() == seal.root:
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


def stored_events(seal: Seal) -> list[Row]:
    """Return everything in the batch's range of ids, and what came late."""
    return rows.read_ids(seal.late) + rows.read(Q(pk__range=(seal.first, seal.last)))


def _belongs(event_id: int, seal: Seal) -> bool:
    if seal.first <= event_id <= seal.last:
        return not within(event_id, seal.gaps)
    return event_id in seal.late


def _hash(row: Row, seal: Seal) -> bytes:
    return rows.hashed(row, seal.salt, rows.form_of(seal))


def _changed(seal: Seal, row: Row, ids: dict[str, int]) -> Finding:
    """Return whether a row was edited, or is what another event was."""
    for event_id in ids.values():
        if event_id != row["id"] and ids.get(_hash({**row, "id": event_id}, seal).hex()[: rows.MARK]) == event_id:
            words = translatable(f"Event {row['id']} was reordered: what it says was sealed as event {event_id}.")
            return Finding("reordered", words, seal.number, row["id"])
    return _edited(seal, row["id"])


def _edited(seal: Seal, event_id: int) -> Finding:
    words = translatable(f"Event {event_id} was edited: it is not as batch {seal.number} sealed it.")
    return Finding("edited", words, seal.number, event_id)


def _missing(seal: Seal, event_id: int) -> Finding:
    words = translatable(f"Event {event_id} is missing: batch {seal.number} was sealed with it.")
    return Finding("missing", words, seal.number, event_id)


def _unreadable(seal: Seal, row: Row) -> Finding:
    words = translatable(
        f"Event {row['id']} cannot be read as an event, and was sealed as such in batch {seal.number}."
    )
    return Finding("unreadable", words, seal.number, row["id"])


NOT_SEALED = gettext_noop(
    "Whatever they say can still be forged: start the server, which seals them, or run “audit seal”."
)
UNKNOWN = (
    "Nothing here says whose key that is: give --key with the fingerprint that was noted when the record was begun."
)


@dataclass(frozen=True)
class Known:
    """Knowledge of the record from elsewhere: a key's fingerprint, the hash of a seal."""

    key: str = ""
    seal: str = ""


def verify(known: Known | None = None) -> Report:
    """Verify the whole record.

    Raises: BadKey, BadMark
    """
    report = Report()
    for _ in steps(report, known or Known()):
        continue
    return report


def steps(report: Report, known: Known) -> Iterator[tuple[int, int]]:
    """Verify piece by piece into `report`; yield how many batches and calls are done, and of how many."""
    every = Seal.objects.count() + ToolCall.objects.count()
    try:
        for finding in _walk(report, known):
            if finding is not None:
                report.findings.append(finding)
            else:
                done = report.batches + report.calls
                yield done, max(every, done)
    except rows.UNREADABLE as error:
        # What an event, a call or an answer is like never ends it: this is a seal, a key, or the database itself.
        words = translatable(
            f"A seal or key after batch {report.batches} cannot even be read: {type(error).__name__}: {error}."
        )
        report.findings.append(Finding("seal edited", words, report.batches + 1))


def _walk(report: Report, known: Known) -> Iterator[Finding | None]:
    """Yield findings, and None after each piece in which there is nothing more to find."""
    public = {key.pk: key.public for key in RecordKey.objects.all()}
    last = Seal.objects.order_by("-number").first()
    late = rows.late_batches()
    report.late = len(late)
    marks, people = (
        _Marks(known.seal, worker.last_mark()),
        People(dict(User.objects.values_list("pk", "username")), set()),
    )
    reading = _Reading(people, Stated())
    yield from _keys(report, known.key, last)
    yield from _before_the_first()
    previous: Seal | None = None
    for seal in rows.every_seal(last=last.number if last else 0):
        wrong = list(_linked(seal, previous, public.get(seal.key_id, "")))
        yield from wrong
        # Of one that was edited it cannot be told what it covers.
        if not any(each.kind == "seal edited" for each in wrong):
            yield from _events(seal, _Around(late, last.watch if last else 0, public, reading), report)
        marks.passes(seal)
        previous = seal
        report.batches += 1
        report.last_seal = seal.hash
        yield None
    yield from _tail(previous, report, reading)
    yield from marks.left()
    yield from calls.compare(report)
    # The code and texts under a definition hash, as each source of tools has them.
    yield from (Finding("not the definition", words) for words in altered())
    yield from reading.stated.compare()


@dataclass(frozen=True)
class _Reading:
    """The readers of every event along the walk."""

    people: People
    stated: Stated

    def read(self, row: Row, batch: int | None) -> Iterator[Finding]:
        self.stated.read(row)
        yield from self.people.compare(row, batch)


def _tail(last: Seal | None, report: Report, reading: _Reading) -> Iterator[Finding]:
    """Yield what is not sealed yet: how much, and whether it should be by now."""
    at, wanted = last.last if last else 0, rows.AT_ONCE
    overdue, first, before = sealing.unsealed_seconds(), at + 1, at
    while page := rows.read(Q(pk__gt=at), most=wanted):
        first = page[0]["id"] if not report.tail else first
        report.tail += len(page)
        at = page[-1]["id"]
        for row in page:
            yield from _gap(before, row["id"] - 1, None)
            before = row["id"]
            yield from reading.read(row, None) if rows.is_readable(row) else ()
    if report.tail and sealing.is_overdue(overdue):
        words = " ".join((_unsealed(report.tail, overdue), NOT_SEALED))
        yield Finding("not sealed", words, None, first)


def _unsealed(count: int, seconds: float) -> str:
    if count == 1:
        return translatable(f"The last event is not sealed, and is {about(seconds)} old.")
    return translatable(f"The last {count:,} events are not sealed, and the first of them is {about(seconds)} old.")


def _linked(seal: Seal, previous: Seal | None, public: str) -> Iterator[Finding]:
    """Verify the seal itself, and that it follows the one before."""
    number = seal.number
    expected = previous.number + 1 if previous else 1
    if number != expected:
        before = number - 1
        words = (
            translatable(f"The seal of batch {expected} is missing.")
            if before == expected
            else translatable(f"The seals of batches {expected} to {before} are missing.")
        )
        yield Finding("seal missing", words, expected)
    elif seal.previous != (previous.hash if previous else ""):
        yield Finding("chain broken", f"The seal of batch {number} does not follow that of the batch before.", number)
    body = rows.body_of(seal)
    if hash_of(body) != seal.hash:
        yield Finding("seal edited", f"The seal of batch {number} was edited.", number)
    elif not is_signed(public, seal.signature, SEAL, body):
        yield Finding("seal unsigned", f"The signature on the seal of batch {number} is not that of its key.", number)


@dataclass(frozen=True)
class _Around:
    """Knowledge for looking at one batch. `late`: of ids that came late, the batch that has them."""

    late: dict[int, int]
    still_open: int
    public: dict[str, str]
    reading: _Reading


def _gap(before: int, until: int, batch: int | None) -> Iterator[Finding]:
    """Yield that ids after `before` are missing. SQLite gives each id once it is kept, so that none is left out."""
    if connection.vendor == "sqlite" and until > before:
        first = before + 1
        words = translatable(f"Events {first} to {until} are missing: ids have no gaps here.")
        yield Finding("gap", words, batch, first)


def _events(seal: Seal, around: _Around, report: Report) -> Iterator[Finding]:
    drop = Drop.objects.filter(pk=seal.number).first()
    if drop is None:
        report.events += seal.count
        there = stored_events(seal)
        yield from compare(seal, there, around.late, around.still_open)
        readable = [row for row in there if rows.is_readable(row)]
        for first, until in seal.gaps:
            yield from _gap(first - 1, until, seal.number)
        for row in readable:
            yield from around.reading.read(row, seal.number)
        yield from _calls_gone(seal, readable)
    elif is_signed(around.public.get(drop.key_id, ""), drop.signature, DROP, rows.body_of_drop(drop, seal)):
        report.dropped.append({"batch": seal.number, "at": rows.iso(drop.dropped_at), "events": seal.count})
        yield from left_over(seal, around.late)
    else:
        words = translatable(f"Batch {seal.number} is said to be dropped by retention, and that is not signed.")
        yield Finding("missing", words, seal.number)


def _calls_gone(seal: Seal, events: list[Row]) -> Iterator[Finding]:
    """Yield calls that are not there any more, each with its first event here."""
    first: dict[str, int] = {}
    for row in events:
        if row["call"] is not None:
            first.setdefault(row["call"], row["id"])
    left = {str(pk) for pk in ToolCall.objects.filter(pk__in=list(first)).values_list("pk", flat=True)}
    for call, event_id in first.items():
        if call not in left:
            words = translatable(f"Call {call} of event {event_id} is not there any more.")
            yield Finding("not what was called", words, seal.number, event_id)


def _keys(report: Report, noted: str, last: Seal | None) -> Iterator[Finding]:
    known = [PublicKey(key.pk, key.public, key.number, key.endorsement) for key in RecordKey.objects.order_by("number")]
    if not known:
        return
    report.key = known[-1].id
    anchor = noted or keys.own_fingerprint() or ""
    if not anchor:
        report.notes.append(UNKNOWN)
    elif why := proofs.broken(known, anchor):
        yield Finding("key not vouched for", why)
    elif last is not None and last.key_id not in proofs.onward(known, anchor):
        words = translatable(
            f"The last seal is of an older key than {anchor[:16]}…, which therefore says nothing of the record yet."
        )
        yield Finding("key not vouched for", words, last.number)


def _before_the_first() -> Iterator[Finding]:
    for event_id in AuditEvent.objects.filter(pk__lt=1).order_by("pk").values_list("pk", flat=True)[:10]:
        yield Finding("inserted", f"Event {event_id} was put in: ids begin with 1.", None, event_id)


class _Marks:
    """Marks of seals that were there once: noted beside the database, or by somebody elsewhere."""

    def __init__(self, expected: str, noted: Mark | None) -> None:
        self._expected, self._noted = expected, noted

    def passes(self, seal: Seal) -> None:
        if seal.hash == self._expected:
            self._expected = ""
        if self._noted and (seal.number, seal.hash) == (self._noted.number, self._noted.hash):
            self._noted = None

    def left(self) -> Iterator[Finding]:
        if self._expected:
            words = translatable(f"The seal {self._expected[:16]}…, which was to be found, is not in the record.")
            yield Finding("truncated", words)
        if self._noted:
            words = translatable(
                f"Seal {self._noted.number} ({self._noted.hash[:16]}…) was here once, as {worker.file()} says, and is"
                " not in the record any more."
            )
            yield Finding("truncated", words, self._noted.number)
