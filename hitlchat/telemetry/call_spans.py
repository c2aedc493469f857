"""Calls as spans: how long somebody was waited for, and how long the tool took. Made from the record once it is over:
whichever process asked, answered and performed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from hitlchat.agent.models import Message
from hitlchat.gate.models import Approval, Decision, ToolCall
from hitlchat.gate.status import SETTLED, Status

RAN: Final = frozenset({Status.SUCCEEDED, Status.FAILED, Status.UNKNOWN})
LARGE: Final = ("arguments", "result", "output", "approval__disclosure", "approval__prompt")


@dataclass(frozen=True)
class Told:
    """A span; `trace` names its trace, whose first span it is if `is_root`."""

    name: str
    trace: UUID
    is_root: bool
    start: datetime
    end: datetime
    attributes: dict[str, Any]
    error: bool = False


def of(*, call_id: UUID, status: Status, **_: Any) -> Iterator[Told]:
    """Yield what is over, now that the call has this status; nothing while it goes on, or if it never did anything."""
    if status not in SETTLED:
        return
    call = ToolCall.objects.select_related("approval").defer(*LARGE).get(pk=call_id)
    run = Message.objects.filter(pk=call.turn_id).values_list("run_id", flat=True).first() if call.turn_id else None
    asked: Approval | None = getattr(call, "approval", None)
    if status in RAN and call.started_at and call.settled_at:
        yield _executed(call, run)
    if asked is not None and call.settled_at:
        # Of a call of a program that did not run, it is all that there is.
        yield _waited(call, asked, run, is_root=run is None and status not in RAN)


def _executed(call: ToolCall, run: UUID | None) -> Told:
    assert call.started_at is not None
    assert call.settled_at is not None
    said: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool_name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": str(call.pk),
        **_both(call),
    }
    if call.status != Status.SUCCEEDED:
        said["error.type"] = str((call.error or {}).get("kind") or call.status)
    name = f"execute_tool {call.tool_name}"
    bad = call.status != Status.SUCCEEDED
    return Told(name, run or call.pk, run is None, call.started_at, call.settled_at, said, bad)


def _waited(call: ToolCall, asked: Approval, run: UUID | None, *, is_root: bool) -> Told:
    answers = Decision.objects.filter(approval=asked, round=call.round).order_by("decided_at")
    last = answers.values_list("decided_at", "means").last()
    end, means = last or (call.settled_at, "system")
    assert end is not None
    outcome = "approved" if call.status in RAN else call.status
    said = {"hitlchat.approval.id": str(asked.pk), "hitlchat.outcome": outcome, "hitlchat.means": means, **_both(call)}
    return Told("wait_for_approval", run or call.pk, is_root, asked.created_at, max(end, asked.created_at), said)


def _both(call: ToolCall) -> dict[str, Any]:
    where = {"gen_ai.conversation.id": str(call.conversation_id)} if call.conversation_id else {}
    return {
        **where,
        "hitlchat.call.id": str(call.pk),
        "hitlchat.source": call.source,
        "hitlchat.risk": call.risk_level,
        "hitlchat.caller": call.caller_kind,
    }
