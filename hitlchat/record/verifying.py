"""Walking the record from its first seal to its last event, a batch at a time: is everything as it was sealed?"""

from collections.abc import Iterator
from dataclasses import dataclass

from hitlchat.gate.models import AuditEvent, Drop, RecordKey, Seal
from hitlchat.record import keys, marking, rows, shown, trust
from hitlchat.record.comparing import compare, left_over
from hitlchat.record.findings import Finding, Report
from hitlchat.record.marking import Mark
from hitlchat.record.seals import DROP, SEAL, hash_of
from hitlchat.record.signing import is_signed
from hitlchat.record.trust import PublicKey

UNKNOWN = (
    "Nothing here says whose key that is: give --key with the fingerprint that was noted when the record was begun."
)


@dataclass(frozen=True)
class Known:
    """What somebody knows of the record from elsewhere: a key's fingerprint, the hash of a seal."""

    key: str = ""
    seal: str = ""


def verify(known: Known | None = None) -> Report:
    """Look at everything. BadKey, BadMark."""
    known = known or Known()
    report = Report()
    for finding in _walk(report, known):
        report.findings.append(finding)
    return report


def _walk(report: Report, known: Known) -> Iterator[Finding]:
    public = {key.pk: key.public for key in RecordKey.objects.all()}
    last = Seal.objects.order_by("-number").first()
    late = {event_id: seal.number for seal in Seal.objects.exclude(late=[]).iterator() for event_id in seal.late}
    report.late = len(late)
    marks = _Marks(known.seal, marking.noted())
    yield from _keys(report, known.key, last)
    yield from _before_the_first()
    previous: Seal | None = None
    for seal in rows.every_seal(last=last.number if last else 0):
        yield from _linked(seal, previous, public.get(seal.key_id, ""))
        yield from _events(seal, late, last.watch if last else 0, report, public)
        marks.passes(seal)
        previous = seal
        report.batches += 1
        report.last_seal = seal.hash
    report.tail = AuditEvent.objects.filter(pk__gt=previous.last if previous else 0).count()
    yield from marks.left()


def _linked(seal: Seal, previous: Seal | None, public: str) -> Iterator[Finding]:
    """The seal itself, and that it follows the one before."""
    number = seal.number
    expected = previous.number + 1 if previous else 1
    if number != expected:
        gone = f"{expected}" if number == expected + 1 else f"{expected} to {number - 1}"
        yield Finding("seal missing", f"The seal of batch {gone} is missing.", expected)
    elif seal.previous != (previous.hash if previous else ""):
        yield Finding("chain broken", f"The seal of batch {number} does not follow that of the batch before.", number)
    body = rows.body_of(seal)
    if hash_of(body) != seal.hash:
        yield Finding("seal edited", f"The seal of batch {number} was edited.", number)
    elif not is_signed(public, seal.signature, SEAL, body):
        yield Finding("seal unsigned", f"The signature on the seal of batch {number} is not that of its key.", number)


def _events(
    seal: Seal, late: dict[int, int], still_open: int, report: Report, public: dict[str, str]
) -> Iterator[Finding]:
    drop = Drop.objects.filter(pk=seal.number).first()
    if drop is None:
        report.events += seal.count
        yield from compare(seal, late, still_open)
        yield from shown.compare(seal)
    elif is_signed(public.get(drop.key_id, ""), drop.signature, DROP, rows.body_of_drop(drop, seal)):
        report.dropped.append({"batch": seal.number, "at": rows.iso(drop.dropped_at), "events": seal.count})
        yield from left_over(seal, late)
    else:
        words = f"Batch {seal.number} is said to be dropped by retention, and that is not signed."
        yield Finding("missing", words, seal.number)


def _keys(report: Report, noted: str, last: Seal | None) -> Iterator[Finding]:
    known = [PublicKey(key.pk, key.public, key.number, key.endorsement) for key in RecordKey.objects.order_by("number")]
    if not known:
        return
    report.key = known[-1].id
    anchor = noted or keys.own_fingerprint() or ""
    if not anchor:
        report.notes.append(UNKNOWN)
    elif why := trust.broken(known, anchor):
        yield Finding("key not vouched for", why)
    elif last is not None and last.key_id not in trust.onward(known, anchor):
        words = f"The last seal is of an older key than {anchor[:16]}…, which therefore says nothing of the record yet."
        yield Finding("key not vouched for", words, last.number)


def _before_the_first() -> Iterator[Finding]:
    for event_id in AuditEvent.objects.filter(pk__lt=1).order_by("pk").values_list("pk", flat=True)[:10]:
        yield Finding("inserted", f"Event {event_id} was put in: ids begin with 1.", None, event_id)


class _Marks:
    """Seals that were there once: noted beside the database, or by somebody elsewhere."""

    def __init__(self, expected: str, noted: Mark | None) -> None:
        self._expected, self._noted = expected, noted

    def passes(self, seal: Seal) -> None:
        if seal.hash == self._expected:
            self._expected = ""
        if self._noted and (seal.number, seal.hash) == (self._noted.number, self._noted.hash):
            self._noted = None

    def left(self) -> Iterator[Finding]:
        if self._expected:
            words = f"The seal {self._expected[:16]}…, which was to be found, is not in the record."
            yield Finding("truncated", words)
        if self._noted:
            words = (
                f"Seal {self._noted.number} ({self._noted.hash[:16]}…) was here once, as {marking.file()} says, and is"
                " not in the record any more."
            )
            yield Finding("truncated", words, self._noted.number)
