"""What a notice says of one call: no words of a model, and arguments short and without what looks like a secret.

Arguments as notices may show them: short, and without what looks like a secret (SR-44).

Doubt hides: what notices carry is kept by mail servers and chats for years. The call itself gets its arguments as they
are.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hitlchat.base.visible import see
from hitlchat.gate import disclosure
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import Approval, CallerKind
from hitlchat.notices.addressing import link
from hitlchat.secrets.detection import hidden, named
from hitlchat.secrets.masking import HIDDEN

MOST_ENTRIES = 20
LONGEST_VALUE = 200
DEEPEST = 4
# No more of a value is looked at.
LOOKED_AT = 1000


def masked(arguments: dict[str, Any]) -> dict[str, Any]:
    """The same names with values that may be shown; of many, the first."""
    entries = list(arguments.items())
    found = {see(name).plain[:80]: _value(name, value, 1) for name, value in entries[:MOST_ENTRIES]}
    if len(entries) > MOST_ENTRIES:
        found["…"] = f"{len(entries) - MOST_ENTRIES} more"
    return found


def _value(name: str, value: Any, depth: int) -> Any:
    if named(name, in_doubt=True):
        return HIDDEN
    match value:
        case str():
            return _text(value)
        case dict() | list() if depth >= DEEPEST:
            return "…"
        case dict():
            return {see(k).plain[:80]: _value(k, each, depth + 1) for k, each in list(value.items())[:MOST_ENTRIES]}
        case list():
            return [_value("", each, depth + 1) for each in value[:MOST_ENTRIES]]
        case _:
            return value


def _text(text: str) -> str:
    # Hidden before it is cut: of a secret that a cut went through, the rest would not be known again.
    looked_at = text if len(text) <= LOOKED_AT else text[:LOOKED_AT].rpartition(" ")[0]
    shown = see(hidden(looked_at, in_doubt=True)).plain
    if len(text) <= LOOKED_AT and len(shown) <= LONGEST_VALUE:
        return shown
    return f"{shown[:LONGEST_VALUE]}… ({max(0, len(text) - LONGEST_VALUE):,} more)"


@dataclass(frozen=True)
class Facts:
    """Texts are as a card shows them: hidden characters stand as escapes."""

    id: str
    tool: str
    source: str
    asked_by: str
    person: str
    risk: int
    deadline: datetime
    link: str | None
    arguments: dict[str, Any] | None = None

    @property
    def risk_words(self) -> str:
        return f"L{self.risk} {RISK_LABELS[self.risk]}"

    @property
    def as_json(self) -> dict[str, Any]:
        told = {
            "id": self.id,
            "tool": self.tool,
            "source": self.source,
            "askedBy": self.asked_by,
            "person": self.person,
            "risk": self.risk,
            "deadline": self.deadline.isoformat(),
            "url": self.link,
        }
        return told if self.arguments is None else {**told, "arguments": self.arguments}


def facts(approval: Approval, *, arguments: bool) -> Facts:
    """Of a call that waits."""
    shown, call = approval.disclosure, approval.call
    assert call.deadline is not None
    return Facts(
        id=str(approval.pk),
        tool=line(call.tool_name),
        source=line(shown.get("tool", {}).get("origin") or call.source),
        asked_by=CallerKind(call.caller_kind).label,
        person=line(call.caller.get_username()),
        risk=disclosure.said(approval),
        deadline=call.deadline,
        link=link("approval", approval.pk),
        arguments=masked(call.arguments) if arguments else None,
    )


def line(text: str) -> str:
    """On one line, with hidden characters as escapes."""
    return see(" ".join(text.split())).plain[:200]
