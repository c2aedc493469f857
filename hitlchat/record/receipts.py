"""For each call that somebody decided about: what was asked, who had it before them, what they said, and what ran.

All of it is in the record's events but what was shown and the arguments, which these events name by their digest.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from hitlchat.gate import canonical
from hitlchat.gate.models import Approval, AuditEvent, ToolCall
from hitlchat.record.receipts_checked import ASKED, SAID, SEEN
from hitlchat.secrecy import Cover

STARTED = "call.executing"
AT_ONCE = 200

Body = dict[str, Any]


def of(calls: dict[str, list[int]]) -> Iterator[Body]:
    """A receipt for each of these calls, from these of its events. A call that is gone has none."""
    left = iter(calls.items())
    while some := dict(islice(left, AT_ONCE)):
        found = {str(call.pk): call for call in ToolCall.objects.filter(pk__in=list(some)).select_related("caller")}
        shown = {str(row.call_id): row for row in Approval.objects.filter(call_id__in=list(some))}
        events: dict[str, list[AuditEvent]] = {}
        for event in AuditEvent.objects.filter(call_id__in=list(some)).select_related("actor").order_by("pk"):
            events.setdefault(str(event.call_id), []).append(event)
        for call_id, ids in some.items():
            if call_id in found:
                yield _receipt(found[call_id], shown.get(call_id), events.get(call_id, []), set(ids))


def _receipt(call: ToolCall, approval: Approval | None, events: list[AuditEvent], ids: set[int]) -> Body:
    disclosures = [event.data["before"] for event in events if event.name == ASKED and "before" in event.data]
    disclosures += [approval.disclosure] if approval else []
    cover = Cover(call.arguments, *disclosures)
    own = [event for event in events if event.pk in ids]
    return {
        "call": str(call.pk),
        "tool": {"name": call.tool_name, "source": call.source, "definition": call.definition_hash},
        "caller": {"kind": call.caller_kind, "user": call.caller_id, "name": call.caller.get_username()},
        "events": [event.pk for event in own],
        "shown": [_shown(event, disclosures, cover) for event in own if event.name == ASKED],
        "seen": [_by(event) for event in own if event.name == SEEN],
        "said": [_said(event, cover) for event in own if event.name in SAID],
        "ran": cover.value(call.arguments) if any(event.name == STARTED for event in own) else None,
        "status": call.status,
    }


def _shown(event: AuditEvent, disclosures: list[Any], cover: Cover) -> Body:
    """`whole`: nothing was hidden of it, so that its digest can be made anew. `matches`: it was here, when exported."""
    digest = event.data.get("digest")
    found = next((each for each in disclosures if canonical.sha256(each) == digest), None)
    shown = cover.value(found)
    said = {"event": event.pk, "digest": digest, "matches": found is not None}
    return {**said, "disclosure": shown, "whole": found is not None and shown == found}


def _said(event: AuditEvent, cover: Cover) -> Body:
    return {**_by(event), "name": event.name, "reason": cover.text(str(event.data.get("reason") or ""))}


def _by(event: AuditEvent) -> Body:
    by = event.actor.get_username() if event.actor else None
    told = {"event": event.pk, "by": by, "means": event.means, "digest": event.data.get("digest")}
    return {**told, "at": event.at.isoformat()}
