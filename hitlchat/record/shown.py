"""What people were shown, and what ran unasked: kept beside the events, which name it by its digest.

The last disclosure of a call is kept with its question; earlier ones are in the event of asking again, which the seal
covers. Of a call that nobody was asked about, it is the arguments that are kept with it.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from django.db.models import Q

from hitlchat.gate import canonical
from hitlchat.gate.models import Approval, AuditEvent, Seal, ToolCall
from hitlchat.record.findings import Finding
from hitlchat.record.receipts_checked import ASKED

UNASKED = ("call.allowed", "call.refused", "call.rejected")

Digests = dict[UUID, set[str]]
Entry = tuple[int, UUID, str, Any]


def compare(seal: Seal) -> Iterator[Finding]:
    """Events of this batch for which what was shown, or called, is not on record as it was."""
    try:
        entries = _entries(seal)
    except ValueError:
        # That an event cannot be read is said of it already.
        return
    try:
        kept = _shown({call for _, call, name, _ in entries if name == ASKED})
        called = _called({call for _, call, name, _ in entries if name != ASKED})
    except ValueError:
        words = f"What was shown or called for an event of batch {seal.number} cannot even be read any more."
        yield Finding("not what was shown", words, seal.number)
        return
    for event_id, call, name, data in entries:
        if name == ASKED and not _holds(data, "digest", kept.get(call)):
            words = f"What was shown for event {event_id} is not on record as it was (call {call})."
            yield Finding("not what was shown", words, seal.number, event_id)
        elif name != ASKED and not _holds(data, "argumentsDigest", called.get(call)):
            words = f"The arguments of call {call} are not those of event {event_id}, when it was let run or refused."
            yield Finding("not what was called", words, seal.number, event_id)


def disclosures(call_id: Any) -> list[dict[str, Any]]:
    """All that were shown about one call, the first one first."""
    events = AuditEvent.objects.filter(call_id=call_id, name=ASKED).order_by("pk")
    before = [event.data["before"] for event in events if "before" in event.data]
    return before + list(Approval.objects.filter(call_id=call_id).values_list("disclosure", flat=True))


def _entries(seal: Seal) -> list[Entry]:
    where = Q(pk__range=(seal.first, seal.last)) | Q(pk__in=seal.late)
    rows = AuditEvent.objects.filter(where, name__in=(ASKED, *UNASKED)).order_by("pk")
    columns = rows.values_list("pk", "call_id", "name", "data")
    return [(pk, call, name, data) for pk, call, name, data in columns if call]


def _holds(data: Any, name: str, kept: Iterable[str] | None) -> bool:
    """Events from before there was such a digest in them say nothing."""
    digest = data.get(name) if isinstance(data, dict) else None
    return digest is None or digest in (kept or ())


def _shown(calls: set[UUID]) -> Digests:
    found: Digests = {}
    last = Approval.objects.filter(call_id__in=calls).values_list("call_id", "disclosure")
    for call, disclosure in last:
        found.setdefault(call, set()).add(_digest(disclosure))
    again = AuditEvent.objects.filter(call_id__in=calls, name=ASKED, data__contains='"before":')
    for call, data in again.values_list("call_id", "data"):
        if call and isinstance(data, dict) and "before" in data:
            found.setdefault(call, set()).add(_digest(data["before"]))
    return found


def _called(calls: set[UUID]) -> Digests:
    rows = ToolCall.objects.filter(pk__in=calls).values_list("pk", "arguments")
    return {call: {_digest(arguments)} for call, arguments in rows}


def _digest(value: Any) -> str:
    try:
        return canonical.sha256(value)
    except canonical.NotJson:
        return ""
