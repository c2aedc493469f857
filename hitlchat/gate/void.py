"""Why a call must not run although its status says that it may: something is no longer what it was."""

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist

from hitlchat.accounts.roles import may_author
from hitlchat.gate import canonical, disclosure, oversight, policy, quorum
from hitlchat.gate.grants import standing
from hitlchat.gate.models import CallerKind, HitlMode, Tool, ToolCall
from hitlchat.gate.status import Status

NO_AUTHOR = "the person it was called for may not test tools any more"


def reason(call: ToolCall) -> str | None:
    """In words; None if nothing has changed. `call` is read with its tool, approval and caller."""
    tool = call.tool
    if lost := _person_lost(call) or standing.reason(call):
        return lost
    if tool is None:
        return "the tool was deleted"
    if not tool.published and call.caller_kind != CallerKind.STUDIO:
        return "the tool was unpublished"
    if call.status == Status.APPROVED:
        try:
            return disclosure.difference(call.approval, call, tool) or _not_decided(call) or _refused_by_now(call, tool)
        except (ObjectDoesNotExist, LookupError, TypeError, canonical.NotJson):
            return "the record of what was shown cannot be read"
    if settings.HITL_ENABLED and tool.hitl_mode == HitlMode.REQUIRED:
        return "the tool asks every time now"
    # Also when the rule was changed while the verdict was on its way to the record.
    if call.rule != policy.rule_of(tool):
        return "the rule that allowed it was changed"
    return None if _same_tool(tool, call) else "the tool's definition changed"


def _person_lost(call: ToolCall) -> str | None:
    """What the person it was called for may not do any more."""
    if not call.caller.is_active:
        return "the account it was called for was deactivated"
    if call.caller_kind == CallerKind.STUDIO and not may_author(call.caller):
        return NO_AUTHOR
    return None


def _not_decided(call: ToolCall) -> str | None:
    """A yes stands when people change, but not when the rules do under which it was given."""
    if not quorum.is_reached(call.approval, call):
        return "fewer people approved it than have to"
    return oversight.CHANGED if oversight.has_changed(call) else None


def _refused_by_now(call: ToolCall, tool: Tool) -> str | None:
    """A yes stands when the rules are others now, unless they refuse the call."""
    if call.rule == policy.rule_of(tool):
        return None
    caller = disclosure.caller_of(call.approval.disclosure)
    said = async_to_sync(policy.judge)(tool, call.arguments, caller, call.conversation_id).verdict
    if not isinstance(said, policy.Refuse):
        return None
    return f"the rules were changed, and refuse it now: {said.reason.rstrip('.')}"


def _same_tool(tool: Tool, call: ToolCall) -> bool:
    return (tool.name, tool.source, tool.definition_hash) == (call.tool_name, call.source, call.definition_hash)
