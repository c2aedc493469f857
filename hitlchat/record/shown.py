"""What people were shown: the disclosures that the events of asking name by their digest.

The last one of a call is kept with its question; earlier ones are in the event of asking again, which the seal covers.
"""

from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from hitlchat.gate import canonical
from hitlchat.gate.models import Approval, AuditEvent, Seal
from hitlchat.record.findings import Finding
from hitlchat.record.receipts_checked import ASKED


def compare(seal: Seal) -> Iterator[Finding]:
    """Events of asking in this batch for which what was shown is not on record as it was."""
    try:
        asked = _asked(seal)
    except ValueError:
        # That an event cannot be read is said of it already.
        return
    if not asked:
        return
    try:
        kept = _kept([event.call_id for event in asked])
    except ValueError:
        words = f"What was shown for an event of batch {seal.number} cannot even be read any more."
        yield Finding("not what was shown", words, seal.number)
        return
    for event in asked:
        digest = event.data.get("digest") if isinstance(event.data, dict) else None
        if digest is not None and digest not in kept.get(event.call_id, ()):
            words = f"What was shown for event {event.pk} is not on record as it was (call {event.call_id})."
            yield Finding("not what was shown", words, seal.number, event.pk)


def disclosures(call_id: Any) -> list[dict[str, Any]]:
    """All that were shown about one call, the first one first."""
    events = AuditEvent.objects.filter(call_id=call_id, name=ASKED).order_by("pk")
    before = [event.data["before"] for event in events if "before" in event.data]
    return before + list(Approval.objects.filter(call_id=call_id).values_list("disclosure", flat=True))


def _asked(seal: Seal) -> list[AuditEvent]:
    where = Q(pk__range=(seal.first, seal.last)) | Q(pk__in=seal.late)
    return list(AuditEvent.objects.filter(where, name=ASKED).order_by("pk"))


def _kept(calls: list[Any]) -> dict[Any, set[str]]:
    """The digests of what is kept of each call, made anew."""
    found: dict[Any, set[str]] = {}
    shown = Approval.objects.filter(call_id__in=calls).values_list("call_id", "disclosure")
    again = AuditEvent.objects.filter(call_id__in=calls, name=ASKED).values_list("call_id", "data")
    for call_id, disclosure in shown:
        found.setdefault(call_id, set()).add(_digest(disclosure))
    for call_id, data in again:
        if isinstance(data, dict) and "before" in data:
            found.setdefault(call_id, set()).add(_digest(data["before"]))
    return found


def _digest(disclosure: Any) -> str:
    try:
        return canonical.sha256(disclosure)
    except canonical.NotJson:
        return ""
