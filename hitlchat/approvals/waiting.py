"""Everything that waits for one person, whoever asked for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from hitlchat.agent.models import Conversation
from hitlchat.gate import card, deciders, joining
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status

# So many are listed; of the rest it is said how many they are.
MOST = 50


@dataclass(frozen=True)
class Line:
    """One approval that waits. `conversation` is the chat it comes from, if it does."""

    approval: Approval
    conversation: Conversation | None
    times: int = 1

    @property
    def mark(self) -> str:
        """Names this very question: asked again, it is another one."""
        return card.key(self.approval.pk, self.approval.call.round)

    @property
    def version(self) -> str:
        """Of the question as the page shows it: its deadline may be put off."""
        assert self.approval.call.deadline is not None
        return f"{self.mark}@{self.approval.call.deadline.timestamp():.0f}*{self.times}"


@dataclass(frozen=True)
class Waiting:
    """The oldest deadline first, and how many `more` there are than the lines."""

    lines: list[Line]
    more: int

    @property
    def count(self) -> int:
        return sum(line.times for line in self.lines) + self.more

    @property
    def marks(self) -> list[str]:
        return [line.version for line in self.lines]


def of(user_id: int) -> Waiting:
    """What waits for this person. The disclosures, which may be long, are left where they are."""
    rows = (
        deciders.waiting_for(user_id)
        .select_related("call__caller")
        .defer("disclosure", "call__arguments", "call__result", "call__output")
    )
    found = list(rows.order_by("call__deadline", "call__created_at", "pk")[: MOST + 1])
    more = deciders.waiting_for(user_id).count() - MOST if len(found) > MOST else 0
    # Of a chat of somebody else's nobody is told more than the call.
    own = {row.call.conversation_id for row in found if row.call.conversation_id and row.call.caller_id == user_id}
    chats = Conversation.objects.in_bulk(own)
    lines = [Line(row, chats.get(row.call.conversation_id), times) for row, times in joining.leads(found[:MOST])]
    return Waiting(lines, max(0, more))


def gone(user_id: int, marks: Sequence[str]) -> list[Approval]:
    """Those of the questions with these marks that no longer wait. Marks that name none are passed over."""
    ids = [found for mark in marks[:MOST] if (found := _id_of(mark))]
    rows = deciders.seen_by(user_id, ids).exclude(call__status=Status.WAITING)
    return list(rows.defer("disclosure", "call__arguments", "call__result", "call__output").order_by("pk"))


def _id_of(mark: str) -> UUID | None:
    try:
        return UUID(mark[:36])
    except ValueError:
        return None
