"""The states of a tool call and the moves between them."""

from django.db.models import TextChoices
from django.utils.translation import gettext_noop


class Status(TextChoices):
    REJECTED = "rejected", gettext_noop("Rejected")
    REFUSED = "refused", gettext_noop("Refused")
    ALLOWED = "allowed", gettext_noop("Allowed")
    WAITING = "waiting", gettext_noop("Waiting")
    APPROVED = "approved", gettext_noop("Approved")
    DECLINED = "declined", gettext_noop("Declined")
    # Not by the tool, which did not run.
    ANSWERED = "answered", gettext_noop("Answered by a person")
    EXPIRED = "expired", gettext_noop("Expired")
    WITHDRAWN = "withdrawn", gettext_noop("Withdrawn")
    EXECUTING = "executing", gettext_noop("Executing")
    SUCCEEDED = "succeeded", gettext_noop("Succeeded")
    FAILED = "failed", gettext_noop("Failed")
    UNKNOWN = "unknown", gettext_noop("Outcome unknown")


# A submitted call enters the record in one of these; withdrawn, where its run ended before anyone was asked.
ENTRIES = frozenset({Status.REJECTED, Status.REFUSED, Status.ALLOWED, Status.WAITING, Status.WITHDRAWN})

MOVES: dict[Status, frozenset[Status]] = {
    Status.REJECTED: frozenset(),
    Status.REFUSED: frozenset(),
    # Withdrawn from allowed or approved: what would run is no longer what was shown, or the run was stopped first.
    # Waiting after all: its conversation was made to ask about more before it started.
    Status.ALLOWED: frozenset({Status.EXECUTING, Status.WITHDRAWN, Status.WAITING}),
    Status.WAITING: frozenset({Status.APPROVED, Status.DECLINED, Status.ANSWERED, Status.EXPIRED, Status.WITHDRAWN}),
    # Waiting again: what it would do is no longer what the person was shown.
    Status.APPROVED: frozenset({Status.EXECUTING, Status.WITHDRAWN, Status.WAITING}),
    Status.DECLINED: frozenset(),
    Status.ANSWERED: frozenset(),
    Status.EXPIRED: frozenset(),
    Status.WITHDRAWN: frozenset(),
    Status.EXECUTING: frozenset({Status.SUCCEEDED, Status.FAILED, Status.UNKNOWN}),
    Status.SUCCEEDED: frozenset(),
    Status.FAILED: frozenset(),
    # A person finds out what happened, or a process thought dead reports after all.
    Status.UNKNOWN: frozenset({Status.SUCCEEDED, Status.FAILED}),
}

# Nothing more happens by itself.
SETTLED = frozenset(status for status, onward in MOVES.items() if not onward) | {Status.UNKNOWN}
# An approval existed and was answered with yes, whatever became of the call afterwards.
STARTED = frozenset({Status.EXECUTING, Status.SUCCEEDED, Status.FAILED, Status.UNKNOWN})
