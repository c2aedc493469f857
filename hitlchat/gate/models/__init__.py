"""The gate's rows: tools, calls, approvals, decisions and the record of all of it."""

from hitlchat.gate.models.audit import AuditEvent as AuditEvent
from hitlchat.gate.models.audit import Drop as Drop
from hitlchat.gate.models.audit import RecordKey as RecordKey
from hitlchat.gate.models.audit import Seal as Seal
from hitlchat.gate.models.calls import Approval as Approval
from hitlchat.gate.models.calls import Attachment as Attachment
from hitlchat.gate.models.calls import CallerKind as CallerKind
from hitlchat.gate.models.calls import Decision as Decision
from hitlchat.gate.models.calls import Grant as Grant
from hitlchat.gate.models.calls import Showing as Showing
from hitlchat.gate.models.calls import ToolCall as ToolCall
from hitlchat.gate.models.calls import Verdict as Verdict
from hitlchat.gate.models.delegation import Delegation as Delegation
from hitlchat.gate.models.ids import new_id as new_id
from hitlchat.gate.models.tools import LONGEST_DEADLINE as LONGEST_DEADLINE
from hitlchat.gate.models.tools import NAME_PATTERN as NAME_PATTERN
from hitlchat.gate.models.tools import TOOL_NAME as TOOL_NAME
from hitlchat.gate.models.tools import Asks as Asks
from hitlchat.gate.models.tools import DecidedBy as DecidedBy
from hitlchat.gate.models.tools import FormerTool as FormerTool
from hitlchat.gate.models.tools import HitlMode as HitlMode
from hitlchat.gate.models.tools import ModelText as ModelText
from hitlchat.gate.models.tools import Outcome as Outcome
from hitlchat.gate.models.tools import Oversight as Oversight
from hitlchat.gate.models.tools import Strictness as Strictness
from hitlchat.gate.models.tools import Tool as Tool
