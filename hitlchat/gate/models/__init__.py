"""The gate's rows: tools, calls, approvals, decisions and the record of all of it."""

from hitlchat.gate.models.audit import AuditEvent, Drop, RecordKey, Seal
from hitlchat.gate.models.calls import Approval, Attachment, CallerKind, Decision, Grant, Showing, ToolCall, Verdict
from hitlchat.gate.models.delegation import Delegation
from hitlchat.gate.models.ids import new_id
from hitlchat.gate.models.tools import (
    LONGEST_DEADLINE,
    NAME_PATTERN,
    TOOL_NAME,
    Asks,
    DecidedBy,
    FormerTool,
    HitlMode,
    ModelText,
    Outcome,
    Oversight,
    Strictness,
    Tool,
)

__all__ = [
    "LONGEST_DEADLINE",
    "NAME_PATTERN",
    "TOOL_NAME",
    "Approval",
    "Asks",
    "Attachment",
    "AuditEvent",
    "CallerKind",
    "DecidedBy",
    "Decision",
    "Delegation",
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
    "Strictness",
    "Tool",
    "ToolCall",
    "Verdict",
    "new_id",
]
