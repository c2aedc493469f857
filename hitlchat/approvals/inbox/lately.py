"""What was decided lately of what a person may see: the calls, how they ended, by whom, and after how long."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from hitlchat.base.durations import span
from hitlchat.gate import deciders
from hitlchat.gate.models import Approval, ToolCall, Verdict
from hitlchat.gate.status import Status

MOST: Final = 5
# Looked for among so many: the last of this person's own, and of everyone's. More is for the history to find.
LOOKED_AT: Final = 50
# Answered with yes, and not over.
MOVING: Final = frozenset({Status.APPROVED, Status.EXECUTING})


@dataclass(frozen=True)
class Ended:
    """A call that no longer waits. `who`: the names of those who answered."""

    approval: Approval
    who: list[str]
    took: timedelta | None

    @property
    def moves(self) -> bool:
        return self.approval.call.status in MOVING

    @property
    def took_words(self) -> str:
        """From when it was asked to the answer."""
        return span(self.took.total_seconds()) if self.took is not None else ""


def of(user_id: int) -> list[Ended]:
    """The latest first."""
    rows = deciders.seen_by(user_id, _candidates(user_id)).exclude(call__status=Status.WAITING)
    rows = rows.defer("disclosure", "call__arguments", "call__result", "call__output")
    found = [_ended(row) for row in rows.prefetch_related("decisions__person")]
    return [each for _, each in sorted(found, key=lambda pair: pair[0], reverse=True)[:MOST]]


def shown(user_id: int) -> dict[str, object]:
    """For _lately.html."""
    rows = of(user_id)
    return {"lately": rows, "goes_on": any(each.moves for each in rows)}


def _candidates(user_id: int) -> Collection[UUID]:
    """Approvals, by the indexes for what somebody asked last and for what was settled last."""
    asked = ToolCall.objects.filter(approval__isnull=False)
    own = asked.filter(caller_id=user_id).exclude(status=Status.WAITING).order_by("-created_at")
    settled = asked.filter(settled_at__isnull=False).order_by("-settled_at")
    return {pk for rows in (own, settled) for pk in rows.values_list("approval", flat=True)[:LOOKED_AT]}


def _ended(row: Approval) -> tuple[datetime, Ended]:
    """With when that was."""
    answers = list(row.decisions.all())
    if row.call.status in (Status.DECLINED, Status.EXPIRED, Status.WITHDRAWN):
        # Who had said yes before somebody declined did not decide it.
        answers = [each for each in answers if each.verdict == Verdict.DECLINE]
    at = answers[-1].decided_at if answers else row.call.settled_at
    took = at - row.created_at if at else None
    return at or row.created_at, Ended(row, [each.person.get_username() for each in answers], took)
