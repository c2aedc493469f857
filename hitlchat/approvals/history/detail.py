"""Everything that is on record about one call: how it was asked and shown, who said what, and what happened then."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import QuerySet

from hitlchat.accounts.roles import may_administer
from hitlchat.approvals.history import listing
from hitlchat.approvals.history.timeline import timeline
from hitlchat.base.durations import between
from hitlchat.gate import attention, deciders, disclosure, editing, who
from hitlchat.gate.card import Card, card
from hitlchat.gate.editing import Change
from hitlchat.gate.grants import scope
from hitlchat.gate.history.row import approval_of, decisions_of, needed
from hitlchat.gate.models import Approval, AuditEvent, Decision, Grant, ToolCall, Verdict

MOST_EVENTS: Final = 200


@dataclass(frozen=True)
class Answer:
    """What one person said. `took`: from the question, `looked`: what is known of how they read it."""

    decision: Decision
    how: str
    took: str
    looked: str
    changes: Sequence[Change]

    @property
    def approved(self) -> bool:
        return self.decision.verdict == Verdict.APPROVE


@dataclass(frozen=True)
class Round:
    """One time that it was put before people. `shown` is the card as it was, None where an older record lacks a part of
    it; `altered`: what is on record is not what the digest was made of."""

    number: int
    asked_at: datetime
    approval: Approval
    shown: Card | None
    answers: Sequence[Answer]
    altered: bool


def rows(calls: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    return needed(calls).defer(None).select_related("grant", "grant__person", "tool")


def of(user: User, call: ToolCall) -> dict[str, Any]:
    """The context of `history/call.html`, for this viewer."""
    asked = approval_of(call)
    events = list(AuditEvent.objects.filter(call=call).select_related("actor")[: MOST_EVENTS + 1])
    (line,) = listing.lines(user, [call])
    # Of somebody else's chat nobody is told more than the call.
    return {
        "call": call,
        "line": line,
        "approval": asked,
        "may_open": asked is not None and deciders.seen_by(user.pk, [asked.pk]).exists(),
        "is_own": call.caller_id == user.pk,
        "rounds": _rounds(asked, events) if asked else [],
        "grant": _grant(user, call.grant),
        "given": [(each, scope.sentence(each)) for each in asked.grants.all()] if asked else [],
        "spoke": next((each.data["spoke"] for each in events if each.data.get("spoke")), []),
        "executed": between(call.started_at, call.settled_at),
        "timeline": timeline(events[:MOST_EVENTS]),
        "more_events": len(events) > MOST_EVENTS,
    }


def _grant(user: User, grant: Grant | None) -> dict[str, Any] | None:
    if grant is None:
        return None
    may_open = grant.person_id == user.pk or may_administer(user)
    return {"id": grant.pk, "sentence": scope.sentence(grant), "may_open": may_open}


def _rounds(asked: Approval, events: Sequence[AuditEvent]) -> list[Round]:
    """The last one first. What was shown before it was asked about again stands with the event of that."""
    times = [each for each in events if each.name == "call.waiting"]
    earlier = [each.data["before"] for each in times if "before" in each.data]
    every = [*earlier, asked.disclosure]
    found = [
        _round(asked, number, shown, times[number - 1].at if 1 < number <= len(times) else asked.created_at)
        for number, shown in enumerate(every, 1)
    ]
    return found[::-1]


def _round(asked: Approval, number: int, shown: dict[str, Any], asked_at: datetime) -> Round:
    put = copy(asked)
    is_last = shown is asked.disclosure
    put.disclosure, put.digest = shown, asked.digest if is_last else disclosure.digest(shown)
    answers = [_answer(each, asked_at, shown) for each in decisions_of(asked.call) if each.round == number]
    return Round(number, asked_at, put, _card(put), answers, altered=disclosure.digest(shown) != put.digest)


def _card(put: Approval) -> Card | None:
    try:
        return card(put)
    except KeyError:
        return None


def _answer(decision: Decision, asked_at: datetime, shown: dict[str, Any]) -> Answer:
    edited: dict[str, Any] | None = decision.edited_arguments
    return Answer(
        decision=decision,
        how=who.how(decision),
        took=between(asked_at, decision.decided_at),
        looked=attention.words(decision, shown),
        changes=() if edited is None else editing.changes(shown["arguments"], edited, shown["fields"]),
    )
