"""What is told of one call. Nothing of it is in words of a model, and its question is left out: that has values."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hitlchat.base.visible import see
from hitlchat.gate import disclosure
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import Approval, CallerKind
from hitlchat.notices.addressing import link
from hitlchat.notices.wording.arguments import masked


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
