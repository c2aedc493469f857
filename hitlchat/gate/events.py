"""What happens to calls, as lines of the log: a name, ids, and words of our own choice.

Never arguments, results, reasons, or names that a model made up: whatever a log is sent to, and at whatever level, it
holds no secret of a call (SR-44).
"""

import logging
from typing import Any, Final

from hitlchat.gate.actor import Actor
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status

logger = logging.getLogger("hitlchat.gate")

NAMES: Final = {
    "call.waiting": "hitl.requested",
    "call.approved": "hitl.approved",
    "call.declined": "hitl.declined",
    "call.expired": "hitl.expired",
    "call.refused": "hitl.refused",
    "call.withdrawn": "hitl.refused",
    "call.executing": "tool.exec.start",
    "call.succeeded": "tool.exec.done",
    "call.failed": "tool.exec.done",
    "call.unknown": "tool.exec.crash",
}
# Of what failed outside of the tool itself.
CRASHES: Final = frozenset({"crash", "internal"})

Fields = dict[str, Any]


def fields(call: ToolCall, name: str, actor: Actor, data: dict[str, Any] | None) -> Fields:
    """What is logged of `name`, an event on record, once it is committed; read from what is at hand."""
    failed = (call.error or {}).get("kind") if call.status == Status.FAILED else None
    found = {
        "event": "tool.exec.crash" if failed in CRASHES else NAMES.get(name, name),
        "call": str(call.pk),
        "approval": (data or {}).get("approval") or _approval(call),
        "conversation": str(call.conversation_id) if call.conversation_id else None,
        # Of a tool that there is not, the name is whatever a model wrote.
        "tool": call.tool_name if call.tool_id else None,
        "source": call.source or None,
        "risk": call.risk_level,
        "caller": call.caller_kind,
        "means": actor.means,
        "rule": call.rule or None,
        "status": Status(call.status).value,
        # Refused by no policy.
        "nobodyAsked": (data or {}).get("nobodyAsked"),
        "errorKind": failed,
        "durationMs": call.duration_ms if name in ("call.succeeded", "call.failed", "call.unknown") else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def log(found: Fields) -> None:
    logger.info("%s %s", found["event"], found["call"], extra=found)


def _approval(call: ToolCall) -> str | None:
    """Where it was read along with the call; that there is none may have been read, too."""
    asked = getattr(call, "approval", None) if ToolCall.approval.is_cached(call) else None
    return str(asked.pk) if asked is not None else None
