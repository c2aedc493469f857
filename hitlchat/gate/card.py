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
FOLD_AFTER_LINES = 12
SHOWN_OF_FOLDED = 400
SHOWN_LINES_OF_FOLDED = 8
MOST_ROWS = 20


@dataclass(frozen=True)
class Row:
    """One argument: its value in its own box; what exceeds the fold is `rest`, with its length in characters."""

    name: Seen
    type: str
    value: Seen
    rest: Seen | None = None
    hidden: int = 0
    hidden_lines: int = 0
    length: int = 0
    # Of the value as a whole, folded or not.
    value_warnings: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.value.pieces or self.value.plain == ""

    @property
    def folded(self) -> str:
        """How much is folded away, in words."""
        many = f"{self.hidden:,} {'character' if self.hidden == 1 else 'characters'}"
        return many if self.hidden_lines < 2 else f"{many} ({self.hidden_lines:,} lines)"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the whole value and the name, each sentence once."""
        return tuple(dict.fromkeys((*self.name.warnings, *self.value_warnings)))


@dataclass(frozen=True)
class TitlePiece:
    """A stretch of the question; values filled into it are shown in boxes, so that none can go on with the sentence."""

    text: Seen
    is_value: bool


@dataclass(frozen=True)
class Card:
    id: str
    call_id: str
    status: Status
    prompt: Seen
    title: tuple[TitlePiece, ...]
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
    def hidden_count(self) -> str:
        return f"{self.hidden:,}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of everything but the arguments, each sentence once."""
        shown = (*(piece.text for piece in self.title), self.tool_name, self.origin, self.for_whom, self.reason)
        return tuple(dict.fromkeys(warning for seen in (*shown, *self.facts) for warning in seen.warnings))

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
        title=_title(shown),
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


def _title(shown: dict[str, Any]) -> tuple[TitlePiece, ...]:
    """Disclosures from before there were pieces have the sentence only."""
    pieces = shown.get("promptPieces", [[shown["prompt"], False]])
    return tuple(TitlePiece(see(text), is_value) for text, is_value in pieces)


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
    whole = see(text)
    if len(text) <= FOLD_AFTER and text.count("\n") < FOLD_AFTER_LINES:
        return Row(see(name), word, whole, length=len(text), value_warnings=whole.warnings)
    at = _fold(text)
    shown, rest = (see(part, stored=whole.stored) for part in (text[:at], text[at:]))
    hidden, lines = len(text) - at, text.count("\n", at) + (not text.endswith("\n"))
    return Row(see(name), word, shown, rest, hidden, lines, len(text), whole.warnings)


def _fold(text: str) -> int:
    """Where `text` folds: after some characters or some lines, whatever comes first."""
    at = -1
    for _ in range(SHOWN_LINES_OF_FOLDED):
        at = text.find("\n", at + 1, SHOWN_OF_FOLDED)
        if at < 0:
            return SHOWN_OF_FOLDED
    return at + 1
