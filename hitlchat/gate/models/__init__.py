"""The gate's rows: tools, calls, approvals, decisions and the record of all of it."""

from hitlchat.gate.models.audit import AuditEvent, Drop, RecordKey, Seal
from hitlchat.gate.models.calls import Approval, Attachment, CallerKind, Decision, Grant, Showing, ToolCall, Verdict
from hitlchat.gate.models.ids import new_id
from hitlchat.gate.models.tools import (
    DEFAULT_PROMPT,
    LONGEST_DEADLINE,
    NAME_PATTERN,
    TOOL_NAME,
    DecidedBy,
    FormerTool,
    HitlMode,
    ModelText,
    Outcome,
    Oversight,
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
