"""Was this approved before? What “ask once” and rules of one's own may ask."""

from typing import Any

from hitlchat.gate import canonical, oversight
from hitlchat.gate.models import Tool, ToolCall, Verdict
from hitlchat.gate.status import Status

# The latest ones: what was approved longer ago is asked about again.
LOOKED_THROUGH = 1000
SIGNED_IN = ("session", "token", "console")


def approved_before(tool: Tool, arguments: dict[str, Any], user_id: int) -> bool:
    """Whether that person said yes, signed in, to a call of `tool` as it is now, from where it is now, with exactly
    `arguments`, and the call succeeded."""
    wanted = canonical.dumps(arguments)
    rows = ToolCall.objects.filter(
        # What was enough for a yes once need not be enough now.
        oversight.stands(),
        caller_id=user_id,
        tool_id=tool.pk,
        tool_name=tool.name,
        source=tool.source,
        definition_hash=tool.definition_hash,
        status=Status.SUCCEEDED,
        approval__isnull=False,
    ).select_related("approval")
    return any(
        canonical.dumps(row.arguments) == wanted and _is_from(row, tool) and _said_yes(row, user_id)
        for row in rows.order_by("-created_at", "-id")[:LOOKED_THROUGH].iterator()
    )


def _is_from(row: ToolCall, tool: Tool) -> bool:
    shown: Any = row.approval.disclosure
    asked = shown.get("tool", {})
    return (asked.get("id"), asked.get("origin")) == (str(tool.pk), tool.origin)


def _said_yes(row: ToolCall, user_id: int) -> bool:
    answers = row.approval.decisions.filter(person_id=user_id, round=row.round)
    return answers.filter(verdict=Verdict.APPROVE, means__in=SIGNED_IN).exists()
