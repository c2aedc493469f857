"""The approval card's contents, from the stored disclosure alone. Everything in it is text (SR-1 to SR-8)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hitlchat.gate import canonical
from hitlchat.gate.models import Approval, CallerKind
from hitlchat.gate.status import Status
from hitlchat.gate.visible import Seen, see

RISK_LABELS = ("Verified", "Safe", "Low", "Moderate", "High", "Critical")
FOLD_AFTER = 600
SHOWN_OF_FOLDED = 400
MOST_ROWS = 20


@dataclass(frozen=True)
class Row:
    """One argument: its value in its own box; what exceeds the fold is `rest`, with its length in characters."""

    name: Seen
    type: str
    value: Seen
    rest: Seen | None = None
    hidden: int = 0
    length: int = 0

    @property
    def empty(self) -> bool:
        return not self.value.pieces or self.value.plain == ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the whole value and the name, each sentence once."""
        rest = self.rest.warnings if self.rest else ()
        return tuple(dict.fromkeys((*self.name.warnings, *self.value.warnings, *rest)))


@dataclass(frozen=True)
class Card:
    id: str
    call_id: str
    status: Status
    prompt: Seen
    tool_name: Seen
    origin: Seen
    asked_by: str
    for_whom: Seen
    risk: int
    reason: Seen
    facts: tuple[Seen, ...]
    rows: tuple[Row, ...]
    more_rows: tuple[Row, ...]
    raw: Seen
    deadline: datetime
    digest: str

    @property
    def risk_label(self) -> str:
        return RISK_LABELS[self.risk]

    @property
    def short_digest(self) -> str:
        return self.digest[:12]

    @property
    def hidden(self) -> int:
        """Characters that are folded away."""
        return sum(row.hidden for row in self.rows) + sum(row.length for row in self.more_rows)

    @property
    def dangerous(self) -> bool:
        return self.risk >= 4


def card(approval: Approval) -> Card:
    """The card of `approval`, whose call is loaded. KeyError when the stored disclosure lacks a part."""
    shown: dict[str, Any] = approval.disclosure
    rows = _rows(shown)
    return Card(
        id=str(approval.pk),
        call_id=str(approval.call_id),
        status=Status(approval.call.status),
        prompt=see(shown["prompt"]),
        tool_name=see(shown["tool"]["name"]),
        origin=see(shown["tool"]["origin"]),
        asked_by=CallerKind(shown["caller"]["kind"]).label,
        for_whom=see(shown["caller"]["name"]),
        risk=shown["risk"],
        reason=see(shown["reason"]),
        facts=tuple(see(fact) for fact in shown["facts"]),
        rows=tuple(rows[:MOST_ROWS]),
        more_rows=tuple(rows[MOST_ROWS:]),
        raw=see(canonical.pretty(shown["arguments"], indent=2)),
        deadline=datetime.fromisoformat(shown["deadline"]),
        digest=approval.digest,
    )


def _rows(shown: dict[str, Any]) -> list[Row]:
    arguments: dict[str, Any] = shown["arguments"]
    types = dict(shown["fields"])
    known = [name for name in types if name in arguments]
    return [
        _row(name, types.get(name, ""), arguments[name]) for name in known + [n for n in arguments if n not in types]
    ]


def _row(name: str, word: str, value: Any) -> Row:
    text = (
        value
        if isinstance(value, str)
        else canonical.pretty(value, indent=2 if isinstance(value, dict | list) else None)
    )
    if len(text) <= FOLD_AFTER:
        return Row(see(name), word, see(text), length=len(text))
    shown, rest = text[:SHOWN_OF_FOLDED], text[SHOWN_OF_FOLDED:]
    return Row(see(name), word, see(shown), see(rest), hidden=len(rest), length=len(text))
