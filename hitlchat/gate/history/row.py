"""One call as a row for other programs, and what became of it in one word, without what looks like a secret (SR-48)."""

from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_noop

from hitlchat.gate import queue, results
from hitlchat.gate.models import Approval, Decision, ToolCall
from hitlchat.gate.status import SETTLED, Status
from hitlchat.secrets.detection import Cover

# Refused by no policy: enough other questions were open, so that nobody could be asked.
NOBODY_ASKED: Final = results.NOBODY_ASKED_STATUS
LABELS: Final[dict[str, str]] = {
    **{status.value: status.label for status in Status if status != Status.REFUSED},
    Status.REFUSED.value: gettext_noop("Refused by a policy"),
    NOBODY_ASKED: gettext_noop("Nobody could be asked"),
}
# Not what became of it, but how it came to run.
UNASKED: Final = "unasked"
CHOICES: Final[dict[str, str]] = {**LABELS, UNASKED: gettext_noop("Ran without asking")}
# Without an approval, only what was allowed comes to these.
NOT_RUN: Final = (Status.REJECTED, Status.REFUSED, Status.WITHDRAWN)
RUNS_UNASKED: Final = (Status.ALLOWED, Status.EXECUTING, Status.SUCCEEDED, Status.FAILED, Status.UNKNOWN)
# What each says; the order is that of the columns.
COLUMNS: Final[dict[str, str]] = {
    "id": "of the call",
    "requestedAt": "when it was submitted (ISO 8601, with its time zone, as all times here)",
    "outcome": "its status; “nobody_asked” apart from “refused” by a policy",
    "toolName": "the tool, as it was called",
    "source": "where the tool comes from: studio, project, upstream or agent; empty for a tool that there is not",
    "riskLevel": "of the tool when it was called, 0 to 5",
    "caller": "what submitted it: chat, studio, api or mcp",
    "person": "for whom it was made",
    "reason": "why it was asked, not asked, refused or rejected, or why it came to nothing",
    "rule": "fingerprint of the rules under which that was said",
    "isAutomatic": "whether it was to run without a person being asked",
    "grantId": "of the grant that it ran on",
    "approvalId": "of the question to people",
    "prompt": "the question, as it was put last",
    "consentDigest": "SHA-256 of all that was shown with it",
    "arguments": "what it was called with, after changes by who approved it",
    "askedAt": "when people were asked first",
    "deciders": "who answered, in their order",
    "decisions": "their answers: person, verdict, means, reason, editedArguments, times, hurried",
    "secondsToDecide": "from the first question to the last answer",
    "hurried": "whether an answer came faster than the card can be read",
    "startedAt": "when it started to execute",
    "settledAt": "when it came to its end",
    "durationMs": "how long it executed",
    "result": "what the tool gave back",
    "error": "what went wrong: kind, message, line",
    "output": "what the tool printed",
    "conversationId": "of the chat that it comes from",
}


def outcome_of(call: ToolCall) -> str:
    return NOBODY_ASKED if call.status == Status.REFUSED and call.reason in queue.REASONS else str(call.status)


def label_of(call: ToolCall) -> str:
    return LABELS[outcome_of(call)]


def ran_unasked(call: ToolCall) -> bool:
    """Return whether it was started, or is about to be, without a person having been asked; its approval is loaded."""
    return approval_of(call) is None and call.status in RUNS_UNASKED


def having(outcome: str) -> Q:
    """Return the condition of calls. Raises: ValueError, for none of CHOICES."""
    if outcome == UNASKED:
        # Only what is asked about has a deadline: there is an index of the others. By what it is not, since the one of
        # outcomes would lead to everything that ran.
        return Q(deadline__isnull=True, approval__isnull=True) & ~Q(status__in=NOT_RUN)
    if outcome == NOBODY_ASKED:
        return _settled_as(Status.REFUSED) & Q(reason__in=queue.REASONS)
    if outcome == Status.REFUSED:
        return _settled_as(Status.REFUSED) & ~Q(reason__in=queue.REASONS)
    status = Status(outcome)
    return _settled_as(status) if status in SETTLED else Q(status=status)


def needed(rows: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    """`rows` with all that `row` and `decisions_of` read of each; without what was shown, which may be long."""
    found = rows.select_related("caller", "approval").prefetch_related("approval__decisions__person")
    return found.defer("approval__disclosure")


def row(call: ToolCall) -> dict[str, Any]:
    """Return a call by the names of COLUMNS; values are JSON's own."""
    asked, answers = approval_of(call), decisions_of(call)
    # What is secret in one of them is hidden in all: arguments come back in questions and results.
    cover = Cover(call.arguments, call.result, *(each.edited_arguments for each in answers))
    return {
        "id": str(call.pk),
        "requestedAt": _moment(call.created_at),
        "outcome": outcome_of(call),
        "toolName": call.tool_name,
        "source": call.source,
        "riskLevel": call.risk_level,
        "caller": call.caller_kind,
        "person": call.caller.get_username(),
        "reason": cover.text(call.reason),
        "rule": call.rule,
        "isAutomatic": ran_unasked(call),
        "grantId": str(call.grant_id) if call.grant_id else None,
        "approvalId": str(asked.pk) if asked else None,
        "prompt": cover.text(asked.prompt) if asked else None,
        "consentDigest": asked.digest if asked else None,
        "arguments": cover.value(call.arguments),
        "askedAt": _moment(asked.created_at) if asked else None,
        "deciders": [each.person.get_username() for each in answers],
        "decisions": [_decision(each, cover) for each in answers],
        "secondsToDecide": seconds_to_decide(call),
        "hurried": any(each.hurried for each in answers),
        "startedAt": _moment(call.started_at),
        "settledAt": _moment(call.settled_at),
        "durationMs": call.duration_ms,
        "result": cover.value(call.result),
        "error": cover.value(call.error),
        "output": cover.text(call.output),
        "conversationId": str(call.conversation_id) if call.conversation_id else None,
    }


def approval_of(call: ToolCall) -> Approval | None:
    """Return the approval of a call; None if nobody was asked."""
    asked: Approval | None = getattr(call, "approval", None)
    return asked


def decisions_of(call: ToolCall) -> list[Decision]:
    """Return the decisions in the order in which they were given."""
    asked = approval_of(call)
    return list(asked.decisions.all()) if asked else []


def seconds_to_decide(call: ToolCall) -> float | None:
    """Return the time from the first question to the last answer; None while there is none."""
    asked, answers = approval_of(call), decisions_of(call)
    if asked is None or not answers:
        return None
    last = max(each.decided_at for each in answers)
    return round(max(0.0, (last - asked.created_at).total_seconds()), 3)


def _settled_as(status: Status) -> Q:
    # Said twice for the index of outcomes, which has only what is settled.
    return Q(status=status, settled_at__isnull=False)


def _decision(each: Decision, cover: Cover) -> dict[str, Any]:
    return {
        "person": each.person.get_username(),
        "verdict": each.verdict,
        "means": each.means,
        "client": each.client or None,
        "token": each.token_name or None,
        "reason": cover.text(each.reason),
        "round": each.round,
        "consentDigest": each.digest,
        "decidedAt": _moment(each.decided_at),
        "firstShownAt": _moment(each.first_shown_at),
        "opened": each.opened,
        "hurried": each.hurried,
        "editedArguments": cover.value(each.edited_arguments),
    }


def _moment(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
