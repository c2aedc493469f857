"""The risk that a question is asked with: one answer for cards, lists, notices, the console, REST and MCP."""

from hitlchat.gate.models import Approval


def said(approval: Approval) -> int:
    """The level, as it was frozen when the question was asked last.

    Of a row that was read without its disclosure it is the call's own, which is written together with that one.
    """
    if "disclosure" in approval.get_deferred_fields():
        return approval.call.risk_level
    return int(approval.disclosure["risk"])
