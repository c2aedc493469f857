"""What waits, and one approval with its card: for a terminal, and as JSON under the names of the REST API."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet

from hitlchat.approvals.console.facts import printable
from hitlchat.gate import card, deciders, disclosure, joining, who
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card
from hitlchat.gate.decide import NoSuchApproval
from hitlchat.gate.models import Approval, Decision
from hitlchat.gate.status import Status

# Read at once; what is asked for is nearly always among the first of them.
AT_ONCE = 200
NOWHERE = "There is no approval with this id."
LARGE = ("disclosure", "call__arguments", "call__result", "call__error", "call__output")


class NobodyNamed(LookupError):
    """Nobody with this name may sign in."""


def person(name: str) -> User:
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        raise NobodyNamed(f"There is nobody named {name!r} who may sign in.")
    return found


def waiting(who: User | None = None, *, tool: str = "", risk: int = 0) -> QuerySet[Approval]:
    """Of everyone, or what `who` may answer; of `tool` only, and of this `risk` or higher. In the order in which their
    time runs out; of everyone on the index of the calls that wait, however many there are."""
    rows = deciders.waiting_for(who.pk) if who else Approval.objects.filter(call__status=Status.WAITING)
    rows = rows.filter(call__tool_name=tool) if tool else rows
    rows = rows.filter(call__risk_level__gte=risk) if risk else rows
    return rows.select_related("call__caller").defer(*LARGE).order_by("call__deadline", "pk")


def unseen(rows: QuerySet[Approval], seen: set[tuple[UUID, int]]) -> Iterator[tuple[UUID, int]]:
    """The id and the round of each question among `rows` that is not in `seen`; read as far as it is needed."""
    start = 0
    ids = rows.values_list("pk", "call__round")
    while page := list(ids[start : start + AT_ONCE]):
        yield from (key for key in page if key not in seen)
        start += AT_ONCE


def approval(approval_id: UUID) -> Approval:
    """NoSuchApproval."""
    rows = Approval.objects.select_related("call__tool", "call__caller")
    found = rows.filter(pk=approval_id).first()
    if found is None:
        raise NoSuchApproval(NOWHERE)
    return found


def card_of(found: Approval, viewer: Actor | None = None) -> Card:
    """As the page has it. KeyError when an older record lacks a part of it."""
    shown = card.card(found, viewer)
    return replace(shown, times=joining.times([found])[found.pk]) if found.call.status == Status.WAITING else shown


def decisions(found: Approval) -> list[Decision]:
    return list(found.decisions.select_related("person"))


def among(ids: list[UUID]) -> QuerySet[Approval]:
    """Without what is large, in the order in which they were asked."""
    return Approval.objects.filter(pk__in=ids).select_related("call__caller").defer(*LARGE).order_by("pk")


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
    said = decisions(row)
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
