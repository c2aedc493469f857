"""Walking the record from its first seal to its last event, a batch at a time: is everything as it was sealed?

Then calls are compared with their events, and the settings that make the gate ask less with the last events about them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.moments import about
from hitlchat.base.sentences import translatable
from hitlchat.gate import stated
from hitlchat.gate.models import AuditEvent, Drop, RecordKey, Seal, ToolCall
from hitlchat.gate.sources import altered
from hitlchat.gate.stated import Facts, Statement
from hitlchat.record import calls, keys, proofs, rows, sealing
from hitlchat.record.proofs import DROP, PublicKey, Row, fault_of, is_signed, mark_of, sealed_as, within
from hitlchat.record.report import Finding, Report

NOT_SEALED: Final = gettext_noop(
    "Unsealed events can still be forged: start the server, which seals them, or run “audit seal”."
)
UNKNOWN: Final = (
    "This does not prove whose key it is: pass --key with the fingerprint noted when the record was started."
)
# So often the settings are compared again, if they change meanwhile.
ATTEMPTS: Final = 5
LONGEST: Final = 80
FINGERPRINTS: Final = ("reached", "headers_and_variables")


def verify(*, key: str = "", seal: str = "") -> Report:
    """Verify the whole record. `key`, `seal`: the fingerprint and the hash that were noted elsewhere.

    Raises: BadKey, BadMark
    """
    report = Report()
    for _ in steps(report, key=key, seal=seal):
        continue
    return report


def steps(report: Report, *, key: str = "", seal: str = "") -> Iterator[tuple[int, int]]:
    """Verify piece by piece into `report`; yield how many batches and calls are done, and of how many."""
    every = Seal.objects.count() + ToolCall.objects.count()
    try:
        for finding in _Walk(report).over(key, seal):
            if finding is not None:
                report.findings.append(finding)
            else:
                done = report.batches + report.calls
                yield done, max(every, done)
    except rows.UNREADABLE as error:
        # Events, calls and answers never raise: this is a seal, a key, or the database itself.
        words = translatable(
            f"A seal or key after batch {report.batches} cannot be read: {type(error).__name__}: {error}."
        )
        report.findings.append(Finding("seal edited", words, report.batches + 1))


def compare(seal: Seal, there: list[Row], late: dict[int, int], still_open: int) -> Iterator[Finding]:
    """Compare the events of one batch, which are `there`, with its seal.

    `late`: the batch of each id that came late. `still_open`: from this batch on, an event in a gap has come late and
    will be sealed.
    """
    marks = dict(sealed_as(rows.body_of(seal), seal.marks))
    for row in there:
        is_late = row["id"] in late or (seal.number >= still_open and within(row["id"], seal.gaps))
        if row["id"] not in marks and not is_late:
            words = translatable(f"Event {row['id']} was inserted: batch {seal.number} was sealed without it.")
            yield Finding("inserted", words, seal.number, row["id"])
    own = {row["id"]: row for row in there if row["id"] in marks}
    broken = list(_against(seal, marks, own))
    yield from broken
    named = {each.event for each in broken}
    for row in own.values():
        if not rows.is_readable(row) and row["id"] not in named:
            words = translatable(
                f"Event {row['id']} is unreadable, and was already unreadable when sealed in batch {seal.number}."
            )
            yield Finding("unreadable", words, seal.number, row["id"])


def _against(seal: Seal, marks: dict[int, str], own: dict[int, Row]) -> Iterator[Finding]:
    missing = [event_id for event_id in marks if event_id not in own]
    if missing:
        # Retention may have been here since.
        if not Drop.objects.filter(pk=seal.number).exists():
            for event_id in missing:
                words = translatable(f"Event {event_id} is missing: it was sealed in batch {seal.number}.")
                yield Finding("missing", words, seal.number, event_id)
        return
    hashes = {event_id: rows.hashed(own[event_id], seal) for event_id in marks}
    if proofs.root(list(hashes.values())).hex() == seal.root:
        return
    wrong = [event_id for event_id, mark in marks.items() if mark_of(hashes[event_id]) != mark]
    if not wrong:
        yield Finding("edited", f"An event of batch {seal.number} was changed after it was sealed.", seal.number)
        return
    yield _changed(seal, own[wrong[0]], marks)
    yield from (_edited(seal, event_id) for event_id in wrong[1:])


def _changed(seal: Seal, row: Row, marks: dict[int, str]) -> Finding:
    """Return whether a row was edited, or was sealed as another event of the batch."""
    for event_id, mark in marks.items():
        if event_id != row["id"] and mark_of(rows.hashed({**row, "id": event_id}, seal)) == mark:
            words = translatable(f"Event {row['id']} was reordered: its content was sealed as event {event_id}.")
            return Finding("reordered", words, seal.number, row["id"])
    return _edited(seal, row["id"])


def _edited(seal: Seal, event_id: int) -> Finding:
    words = translatable(f"Event {event_id} was edited after it was sealed in batch {seal.number}.")
    return Finding("edited", words, seal.number, event_id)


class _Walk:
    """One walk over the whole record; its counts go into `report`."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._public = {key.pk: key.public for key in RecordKey.objects.all()}
        self._last = Seal.objects.order_by("-number").first()
        self._late = rows.late_batches()
        self._stated = _Stated()
        self._names = dict(User.objects.values_list("pk", "username"))
        self._renamed: set[int] = set()

    def over(self, noted_key: str, noted_seal: str) -> Iterator[Finding | None]:
        """Yield findings, and None after each piece in which there is nothing more to find."""
        mark = sealing.last_mark()
        self._report.late = len(self._late)
        yield from self._keys(noted_key)
        for event_id in AuditEvent.objects.filter(pk__lt=1).order_by("pk").values_list("pk", flat=True)[:10]:
            yield Finding("inserted", f"Event {event_id} was inserted: ids begin with 1.", None, event_id)
        previous: Seal | None = None
        for seal in rows.every_seal(last=self._last.number if self._last else 0):
            wrong = list(self._linked(seal, previous))
            yield from wrong
            # An edited seal does not tell which events it covers.
            if not any(each.kind == "seal edited" for each in wrong):
                yield from self._batch(seal)
            previous = seal
            self._report.batches += 1
            self._report.last_seal = seal.hash
            yield None
        yield from self._tail(previous.last if previous else 0)
        yield from _cut_off(noted_seal, mark)
        yield from calls.compare(self._report)
        yield from (Finding("not the definition", words) for words in altered())
        yield from self._stated.compare()

    def _keys(self, noted: str) -> Iterator[Finding]:
        columns = RecordKey.objects.order_by("number").values_list("id", "public", "number", "endorsement")
        chain = [PublicKey(*values) for values in columns]
        if not chain:
            return
        self._report.key = chain[-1].id
        anchor = noted or keys.own_fingerprint() or ""
        if not anchor:
            self._report.notes.append(UNKNOWN)
        elif why := proofs.broken(chain, anchor):
            yield Finding("key not vouched for", why)
        elif self._last is not None and self._last.key_id not in proofs.onward(chain, anchor):
            words = translatable(
                f"The last seal is by an older key than {anchor[:16]}…, so that key proves nothing yet."
            )
            yield Finding("key not vouched for", words, self._last.number)

    def _linked(self, seal: Seal, previous: Seal | None) -> Iterator[Finding]:
        """Verify the seal itself, and that it follows the one before."""
        number, expected = seal.number, previous.number + 1 if previous else 1
        if number != expected:
            before = number - 1
            words = (
                translatable(f"The seal of batch {expected} is missing.")
                if before == expected
                else translatable(f"The seals of batches {expected} to {before} are missing.")
            )
            yield Finding("seal missing", words, expected)
        elif seal.previous != (previous.hash if previous else ""):
            words = translatable(f"The seal of batch {number} does not follow the previous seal.")
            yield Finding("chain broken", words, number)
        match fault_of(rows.body_of(seal), seal.hash, seal.signature, self._public.get(seal.key_id, "")):
            case "edited":
                yield Finding("seal edited", f"The seal of batch {number} was edited.", number)
            case "unsigned":
                words = translatable(f"The signature on the seal of batch {number} does not match its key.")
                yield Finding("seal unsigned", words, number)

    def _batch(self, seal: Seal) -> Iterator[Finding]:
        drop = Drop.objects.filter(pk=seal.number).first()
        if drop is None:
            yield from self._events(seal)
        elif is_signed(self._public.get(drop.key_id, ""), drop.signature, DROP, rows.body_of_drop(drop, seal)):
            at = rows.iso(drop.dropped_at)
            self._report.dropped.append({"batch": seal.number, "at": at, "events": seal.count})
            left = AuditEvent.objects.filter(pk__range=(seal.first, seal.last)).values_list("pk", flat=True)
            for event_id in left:
                if self._late.get(event_id, seal.number) == seal.number:
                    words = translatable(f"Event {event_id} was inserted: batch {seal.number} was dropped.")
                    yield Finding("inserted", words, seal.number, event_id)
        else:
            words = translatable(f"Batch {seal.number} is marked as dropped by retention, but this is not signed.")
            yield Finding("missing", words, seal.number)

    def _events(self, seal: Seal) -> Iterator[Finding]:
        self._report.events += seal.count
        there = rows.stored(seal)
        yield from compare(seal, there, self._late, self._last.watch if self._last else 0)
        for first, until in seal.gaps:
            yield from _gap(first, until, seal.number)
        first_of: dict[str, int] = {}
        for row in filter(rows.is_readable, there):
            yield from self._read(row, seal.number)
            if row["call"] is not None:
                first_of.setdefault(row["call"], row["id"])
        left = {str(pk) for pk in ToolCall.objects.filter(pk__in=list(first_of)).values_list("pk", flat=True)}
        for call, event_id in first_of.items():
            if call not in left:
                words = translatable(f"Call {call} of event {event_id} is missing.")
                yield Finding("not what was called", words, seal.number, event_id)

    def _tail(self, sealed: int) -> Iterator[Finding]:
        """Count the events that are not sealed yet, and yield whether they should be by now."""
        at, seconds, first = sealed, sealing.unsealed_seconds(), None
        while page := rows.read(Q(pk__gt=at), most=rows.AT_ONCE):
            self._report.tail += len(page)
            for row in page:
                first = first or row["id"]
                yield from _gap(at + 1, row["id"] - 1, None)
                at = row["id"]
                yield from self._read(row, None) if rows.is_readable(row) else ()
        count = self._report.tail
        if count and sealing.is_overdue(seconds):
            words = (
                translatable(f"The last event is {about(seconds)} old and not sealed.")
                if count == 1
                else translatable(f"The last {count:,} events are not sealed; the oldest is {about(seconds)} old.")
            )
            yield Finding("not sealed", " ".join((words, NOT_SEALED)), None, first)

    def _read(self, row: Row, batch: int | None) -> Iterator[Finding]:
        """Note the settings that an event states, and yield each person in it who has another name now, once."""
        self._stated.read(row)
        data, event = row["data"] if isinstance(row["data"], dict) else {}, row["id"]
        for who in (data.get("by"), data.get("caller")):
            if not isinstance(who, dict) or "name" not in who:
                continue
            person, name = who.get("id"), who["name"]
            if not isinstance(person, int) or person in self._renamed or self._names.get(person) == name:
                continue
            self._renamed.add(person)
            now = self._names.get(person)
            words = (
                translatable(f"Person {person}, “{name}” in event {event}, is missing.")
                if now is None
                else translatable(f"Person {person} is called “{now}”, but was “{name}” in event {event}.")
            )
            yield Finding("not the name", words, batch, event)


def _gap(first: int, until: int, batch: int | None) -> Iterator[Finding]:
    """Yield that ids are missing: SQLite leaves none out, as it gives an id only to a row that it stores."""
    if connection.vendor == "sqlite" and until >= first:
        words = translatable(f"Events {first} to {until} are missing: ids have no gaps here.")
        yield Finding("gap", words, batch, first)


def _cut_off(expected: str, mark: sealing.Mark | None) -> Iterator[Finding]:
    """Yield seals that were there once: noted by somebody elsewhere, or beside the database."""
    if expected and not Seal.objects.filter(hash=expected).exists():
        yield Finding("truncated", f"The expected seal {expected[:16]}… is not in the record.")
    if mark and not Seal.objects.filter(pk=mark.number, hash=mark.hash).exists():
        words = translatable(
            f"Seal {mark.number} ({mark.hash[:16]}…), noted in {sealing.mark_file()}, is missing from the record."
        )
        yield Finding("truncated", words, mark.number)


@dataclass
class _Stated:
    """Settings that make the gate ask less, as events state them, read in any order; `last`: the newest event read."""

    statements: dict[int, list[Statement]] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    last: int = 0

    def read(self, row: Row) -> None:
        self.last = max(self.last, row["id"])
        data = row["data"]
        if row["call"] is not None or not isinstance(data, dict):
            return
        if found := list(stated.statements(row["name"], data)):
            self.statements[row["id"]] = found
        if row["name"] == stated.BEGUN and isinstance(data.get("kinds"), list):
            self.begun |= {kind for kind in data["kinds"] if isinstance(kind, str)}

    def compare(self) -> Iterator[Finding]:
        """Yield each difference to the database. Changes made meanwhile have events, which are read first."""
        found = list(self._compared())
        for _ in range(ATTEMPTS):
            newer = rows.read(Q(pk__gt=self.last)) if found else []
            if not newer:
                break
            for row in filter(rows.is_readable, newer):
                self.read(row)
            found = list(self._compared())
        yield from found

    def _compared(self) -> Iterator[Finding]:
        expected = self._folded()
        for kind in settings.RECORD_STATES:
            try:
                there = stated.now(kind)
            except rows.UNREADABLE as error:
                words = translatable(f"The stored {_word(kind)} data cannot be read: {error}.")
                yield Finding("not as stated", words)
                continue
            for key, (event, facts) in expected.get(kind, {}).items():
                yield from _differences(kind, key, event, facts, there.get(key))
            if kind in self.begun:
                for key in there.keys() - expected.get(kind, {}).keys():
                    words = translatable(f"The {_word(kind)} {_label(key, there[key])} is not on record.")
                    yield Finding("not on record", words)

    def _folded(self) -> dict[str, dict[str, tuple[int, Facts | None]]]:
        """Return the last event and facts about each key, by kind."""
        found: dict[str, dict[str, tuple[int, Facts | None]]] = {}
        for event in sorted(self.statements):
            for kind, key, facts in self.statements[event]:
                before = found.setdefault(kind, {}).get(key, (0, None))[1]
                # Events of a tool have the fields that changed.
                whole = {**(before or {}), **facts} if kind == "tool" and facts is not None else facts
                found[kind][key] = event, whole
        return found


def _differences(kind: str, key: str, event: int, stated_facts: Facts | None, there: Facts | None) -> Iterator[Finding]:
    if stated_facts is None or there is None:
        if there is not None:
            words = translatable(
                f"The {_word(kind)} {_label(key, there)} exists, but event {event} says that it was removed."
            )
            yield Finding("not as stated", words, event=event)
        elif stated_facts is not None:
            words = translatable(f"The {_word(kind)} {_label(key, stated_facts)} of event {event} is missing.")
            yield Finding("not as stated", words, event=event)
        return
    # Any text may have been put in; of other kinds, older events do not state every field.
    names = stated_facts.keys() | there.keys() if kind == "texts" else stated_facts.keys()
    for name in sorted(names):
        expected, actual = stated_facts.get(name), there.get(name)
        if name in FINGERPRINTS and isinstance(expected, dict) and isinstance(actual, dict):
            # By the keys that made both: a fingerprint of another SECRET_KEY tells nothing.
            is_same = all(expected[each] == actual[each] for each in expected.keys() & actual.keys())
        else:
            is_same = expected == actual
        if not is_same:
            column, word, label = name.replace("_", " "), _word(kind), _label(key, there)
            now, before = _short(actual), _short(expected)
            words = translatable(
                f"The {column} of the {word} {label} is {now}, but event {event}, the last about it, says {before}."
            )
            yield Finding("not as stated", words, event=event)


def _word(kind: str) -> str:
    return {"rules": "rules of tool", "texts": "texts of tool"}.get(kind, kind)


def _label(key: str, facts: Facts | None) -> str:
    return repr((facts or {}).get("name", key))


def _short(value: Any) -> str:
    text = canonical.pretty(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
