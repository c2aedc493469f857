"""By what calls are found in the history: one meaning of each filter, for the page, the API and the export."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from hitlchat.gate.history.decided import decided
from hitlchat.gate.history.outcome import having
from hitlchat.gate.models import ToolCall

# How whoever answered was known, in words.
MEANS: Final[dict[str, str]] = {
    "session": "Signed in",
    "token": "With an approver token",
    "console": "At the console",
    "elicitation": "By an MCP client's word",
}


@dataclass(frozen=True)
class Wanted:
    """All of it has to fit; None and False narrow nothing.

    `outcome` is one of outcome.CHOICES, `caller` a kind of caller, `person` the name of whom a call was made for,
    `decider` of one who answered, `means` one of MEANS, by which somebody who answered was known, `hurried` of answers
    faster than can be read; from `since` on, to before `until`.
    """

    outcome: str | None = None
    status: str | None = None
    tool: str | None = None
    source: str | None = None
    caller: str | None = None
    person: str | None = None
    decider: str | None = None
    rule: str | None = None
    risk: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    conversation: UUID | None = None
    hurried: bool = False
    means: str | None = None

    @property
    def as_json(self) -> dict[str, Any]:
        """What narrows, for the record."""
        given = {name: value for name, value in asdict(self).items() if value is not None and value is not False}
        return {name: _text(value) if isinstance(value, datetime | UUID) else value for name, value in given.items()}

    def narrowed(self, rows: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
        columns = {
            "status": self.status, "tool_name": self.tool, "source": self.source, "caller_kind": self.caller,
            "rule": self.rule, "risk_level": self.risk, "created_at__gte": self.since, "created_at__lt": self.until,
            "conversation_id": self.conversation,
        }  # fmt: skip
        rows = rows.filter(**{name: value for name, value in columns.items() if value is not None})
        if self.outcome is not None:
            rows = rows.filter(having(self.outcome))
        if self.person is not None:
            whose = _id_of(self.person)
            rows = rows.filter(caller_id=whose) if whose else rows.none()
        return rows.filter(*self._decided())

    def _decided(self) -> list[Q]:
        which: dict[str, Any] = {"hurried": True} if self.hurried else {}
        if self.decider is not None:
            which["person_id"] = _id_of(self.decider)
        if self.means is not None:
            which["means"] = self.means
        return [decided(**which)] if which else []


def _id_of(username: str) -> int:
    """0, which is nobody's, for a name that is nobody's: filters tell nothing about who there is."""
    return User.objects.filter(username=username).values_list("pk", flat=True).first() or 0


def _text(value: datetime | UUID) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
