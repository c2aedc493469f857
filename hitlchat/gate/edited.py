"""Arguments as the person deciding changed them: whether they may run instead."""

from typing import Any

from asgiref.sync import async_to_sync

from hitlchat.gate import canonical, disclosure, policy, schema
from hitlchat.gate.models import ToolCall


class BadEdit(ValueError):
    """The edited arguments can't be approved; the message says why."""


def is_same(edited: dict[str, Any], arguments: dict[str, Any]) -> bool:
    """As text: to Python, `1`, `1.0` and `True` would be equal."""
    try:
        return canonical.dumps(edited) == canonical.dumps(arguments)
    except canonical.NotJson as error:
        raise BadEdit(f"The arguments are not valid JSON: {error}.") from error


def checked(edited: dict[str, Any], call: ToolCall) -> tuple[dict[str, Any], str]:
    """What would run instead, with the defaults, and what the policies say of it, in a sentence. BadEdit."""
    if call.tool is None:
        raise BadEdit("The tool was deleted.")
    if call.quorum > 1:
        raise BadEdit(f"{call.quorum} people approve this call, all of them the same arguments: they stay as asked.")
    try:
        schema.validate(call.tool.input_schema, edited)
    except schema.BadArguments as error:
        raise BadEdit(str(error)) from error
    arguments = schema.with_defaults(call.tool.input_schema, edited)
    caller = disclosure.caller_of(call.approval.disclosure)
    verdict = async_to_sync(policy.judge)(call.tool, arguments, caller, call.conversation_id).verdict
    if isinstance(verdict, policy.Refuse):
        raise BadEdit(verdict.reason)
    return arguments, verdict.reason
