"""What the gate keeps: tools, calls, approvals, decisions and the record of all of it."""

from hitlchat.gate.models.approvals import Approval, Decision, Verdict
from hitlchat.gate.models.audit import AuditEvent
from hitlchat.gate.models.calls import Attachment, CallerKind, ToolCall
from hitlchat.gate.models.grants import Grant
from hitlchat.gate.models.ids import new_id
from hitlchat.gate.models.oversight import DecidedBy, Oversight
from hitlchat.gate.models.seals import Drop, RecordKey, Seal
from hitlchat.gate.models.showings import Showing
from hitlchat.gate.models.texts import ModelText, Outcome
from hitlchat.gate.models.tools import (
    DEFAULT_PROMPT,
    LONGEST_DEADLINE,
    NAME_PATTERN,
    TOOL_NAME,
    FormerTool,
    HitlMode,
    Tool,
)

__all__ = [
    "DEFAULT_PROMPT",
    "LONGEST_DEADLINE",
    "NAME_PATTERN",
    "TOOL_NAME",
    "Approval",
    "Attachment",
    "AuditEvent",
    "CallerKind",
    "DecidedBy",
    "Decision",
    "Drop",
    "FormerTool",
    "Grant",
    "HitlMode",
    "ModelText",
    "Outcome",
    "Oversight",
    "RecordKey",
    "Seal",
    "Showing",
    "Tool",
    "ToolCall",
    "Verdict",
    "new_id",
]
