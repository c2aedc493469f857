"""Approvals as JSON: the fields of the REST API, under its names (its folder is a sibling, so they are spelled here;
a test compares). Everything beyond ASCII is escaped, and so is what a terminal would act on."""

import json
from collections.abc import Iterable
from typing import Any

from hitlchat.approvals.console import looking
from hitlchat.approvals.console.text import printable
from hitlchat.gate import deciders, disclosure, joining, who
from hitlchat.gate.models import Approval, Decision
from hitlchat.gate.status import Status

ENDS = {
    Status.WAITING: "pending",
    Status.DECLINED: "declined",
    Status.EXPIRED: "expired",
    Status.WITHDRAWN: "withdrawn",
}


def dumped(value: Any) -> str:
    """On one line."""
    return printable(json.dumps(value, default=str).replace("\x7f", "\\u007f"))


def line(row: Approval) -> dict[str, Any]:
    """One that waits, without what takes long to read."""
    assert row.call.deadline is not None
    return {
        "id": str(row.pk),
        "callId": str(row.call_id),
        "toolName": row.call.tool_name,
        "source": row.call.source,
        "requestedAt": row.created_at.isoformat(),
        "deadline": row.call.deadline.isoformat(),
        "riskLevel": disclosure.said(row),
        "caller": row.call.caller_kind,
        "requester": row.call.caller.get_username(),
        "status": ENDS.get(Status(row.call.status), "approved"),
        "quorum": row.call.quorum,
        "callStatus": row.call.status,
    }


def whole(row: Approval) -> dict[str, Any]:
    shown, waits = row.disclosure, row.call.status == Status.WAITING
    said = looking.decisions(row)
    deadline = row.call.deadline
    return {
        **line(row),
        "arguments": row.call.arguments,
        "prompt": row.prompt,
        "sessionId": shown["conversation"],
        "userPrompt": shown["userPrompt"],
        "reason": shown["reason"],
        "preview": shown.get("preview"),
        # Only here, where all that it stands for is.
        "consentDigest": row.digest,
        "askedTimes": joining.times([row])[row.pk] if waits else 1,
        "askedAgain": shown.get("again"),
        "grantId": _first(str(given) for given in row.grants.values_list("pk", flat=True)[:1]),
        "decidedBy": row.call.decided_by,
        "deciderGroup": _first(group["name"] for group in [(shown.get("whoDecides") or {}).get("group")] if group),
        "approvedBy": [each.person.get_username() for each in _yes(row, said)],
        "whoDecides": who.sentences(row),
        "decisions": [_decision(each) for each in said],
        "result": row.call.result,
        "error": row.call.error,
        "deadline": deadline.isoformat() if deadline else shown["deadline"],
    }


def _first(found: Iterable[str]) -> str | None:
    return next(iter(found), None)


def _yes(row: Approval, said: Iterable[Decision]) -> list[Decision]:
    if row.call.status == Status.WAITING and row.call.quorum > 1:
        return list(deciders.counted(approval=row).select_related("person"))
    return [each for each in said if each.verdict == "approve" and each.round == row.call.round]


def _decision(each: Decision) -> dict[str, Any]:
    return {
        "person": each.person.get_username(),
        "verdict": each.verdict,
        "reason": each.reason,
        "means": each.means,
        "client": each.client or None,
        "token": each.token_name or None,
        "decidedAt": each.decided_at.isoformat(),
        "editedArguments": each.edited_arguments,
    }
