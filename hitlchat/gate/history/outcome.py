"""What became of a call, in one word: its status, and apart from that what a status alone does not tell (SR-48)."""

from typing import Final

from django.db.models import Q

from hitlchat.gate import limits, results
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.status import SETTLED, Status

# Refused by no policy: enough other questions were open, so that nobody could be asked.
NOBODY_ASKED: Final = results.NOBODY_ASKED_STATUS
LABELS: Final[dict[str, str]] = {
    **{status.value: status.label for status in Status if status != Status.REFUSED},
    Status.REFUSED.value: "Refused by a policy",
    NOBODY_ASKED: "Nobody could be asked",
}
# Not what became of it, but how it came to run.
UNASKED: Final = "unasked"
CHOICES: Final[dict[str, str]] = {**LABELS, UNASKED: "Ran without being asked"}
# Without an approval, only what was allowed comes to these.
NOT_RUN: Final = (Status.REJECTED, Status.REFUSED, Status.WITHDRAWN)
RUNS_UNASKED: Final = (Status.ALLOWED, Status.EXECUTING, Status.SUCCEEDED, Status.FAILED, Status.UNKNOWN)


def outcome_of(call: ToolCall) -> str:
    return NOBODY_ASKED if call.status == Status.REFUSED and call.reason in limits.REASONS else str(call.status)


def label_of(call: ToolCall) -> str:
    return LABELS[outcome_of(call)]


def ran_unasked(call: ToolCall) -> bool:
    """Whether it was started, or is about to be, without a person having been asked; its approval is loaded."""
    asked: Approval | None = getattr(call, "approval", None)
    return asked is None and call.status in RUNS_UNASKED


def having(outcome: str) -> Q:
    """Of calls. ValueError: none of CHOICES."""
    if outcome == UNASKED:
        # Only what is asked about has a deadline: there is an index of the others. By what it is not, since the one of
        # outcomes would lead to everything that ran.
        return Q(deadline__isnull=True, approval__isnull=True) & ~Q(status__in=NOT_RUN)
    if outcome == NOBODY_ASKED:
        return _settled_as(Status.REFUSED) & Q(reason__in=limits.REASONS)
    if outcome == Status.REFUSED:
        return _settled_as(Status.REFUSED) & ~Q(reason__in=limits.REASONS)
    status = Status(outcome)
    return _settled_as(status) if status in SETTLED else Q(status=status)


def _settled_as(status: Status) -> Q:
    # Said twice for the index of outcomes, which has only what is settled.
    return Q(status=status, settled_at__isnull=False)
