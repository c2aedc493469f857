"""The approval card's contents, from the stored disclosure alone. Everything in it is text (SR-1 to SR-8)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hitlchat.base import canonical
from hitlchat.base.visible import Seen, see
from hitlchat.gate import disclosure
from hitlchat.gate.actor import Actor
from hitlchat.gate.effect import Again, Effect, Row, again, box, effect
from hitlchat.gate.models import Approval, CallerKind
from hitlchat.gate.status import Status
from hitlchat.gate.who import Standing, standing, told

RISK_LABELS = ("Verified", "Safe", "Low", "Moderate", "High", "Critical")
MOST_ROWS = 20
MOST_FACTS = 3


@dataclass(frozen=True)
class TitlePiece:
    """A stretch of the question; values filled into it are shown in boxes, so that none can go on with the sentence."""

    text: Seen
    is_value: bool


@dataclass(frozen=True)
class Card:
    id: str
    round: int
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
    more_facts: tuple[Seen, ...]
    rows: tuple[Row, ...]
    more_rows: tuple[Row, ...]
    raw: Seen
    effect: Effect | None
    again: Again | None
    deadline: datetime
    digest: str
    grantable: bool
    # Who decides, where there is something to say of it; and how that stands for whom it is shown to.
    decides: Seen | None = None
    who: Standing | None = None
    times: int = 1

    @property
    def key(self) -> str:
        """Names this card on a page: asked again, once more, or answered by its person, it is another one."""
        named = key(self.id, self.round) + (f"-{self.times}x" if self.times > 1 else "")
        return named if self.who is None or self.who.stance == "may" else f"{named}-{self.who.stance}"

    @property
    def risk_label(self) -> str:
        return RISK_LABELS[self.risk]

    @property
    def short_digest(self) -> str:
        return self.digest[:12]

    @property
    def hidden(self) -> int:
        """Characters that are folded away."""
        shown = sum(part.hidden for part in (*self.rows, self.effect, self.again) if part)
        return shown + sum(row.length for row in self.more_rows)

    @property
    def hidden_count(self) -> str:
        return f"{self.hidden:,}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings about everything but the arguments, each sentence once."""
        shown = (*(piece.text for piece in self.title), self.tool_name, self.origin, self.for_whom, self.reason)
        shown += (*self.facts, *self.more_facts)
        return tuple(dict.fromkeys(warning for seen in shown for warning in seen.warnings))

    @property
    def dangerous(self) -> bool:
        return self.risk >= 4


def key(approval_id: object, round: int) -> str:  # noqa: A002
    return f"{approval_id}-{round}" if round > 1 else str(approval_id)


def card(approval: Approval, viewer: Actor | None = None) -> Card:
    """The card of `approval`, whose call is loaded; for one that is open, as its `viewer` may answer it. KeyError when
    the stored disclosure lacks a part.
    """
    shown: dict[str, Any] = approval.disclosure
    rows, until = _rows(shown), datetime.fromisoformat(shown["deadline"])
    facts = tuple(map(see, filter(None, [shown.get("ranBefore"), *shown["facts"]])))
    preview, asked = shown.get("preview"), shown.get("again")
    changes = again(asked, preview) if asked and preview else None
    return Card(
        id=str(approval.pk),
        round=approval.call.round,
        call_id=str(approval.call_id),
        status=Status(approval.call.status),
        prompt=see(shown["prompt"]),
        title=_title(shown),
        tool_name=see(shown["tool"]["name"]),
        origin=see(shown["tool"]["origin"]),
        asked_by=CallerKind(shown["caller"]["kind"]).label,
        for_whom=see(shown["caller"]["name"]),
        risk=disclosure.said(approval),
        reason=see(shown["reason"]),
        facts=facts[:MOST_FACTS],
        more_facts=facts[MOST_FACTS:],
        rows=tuple(rows[:MOST_ROWS]),
        more_rows=tuple(rows[MOST_ROWS:]),
        raw=see(canonical.pretty(shown["arguments"], indent=2)),
        effect=effect(preview) if preview and not (changes and changes.whole) else None,
        again=changes,
        # Of the row: it may have been put off since the question was asked.
        deadline=approval.call.deadline or until,
        digest=approval.digest,
        grantable=approval.call.grantable and not approval.call.oversight_digest,
        decides=told(approval),
        who=standing(approval, viewer) if viewer else None,
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
    return box(text, name, word)
