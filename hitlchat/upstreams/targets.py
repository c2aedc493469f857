"""Where an approved call goes: read right before it is sent, and only if all is as it was accepted."""

from dataclasses import dataclass
from typing import Any

from hitlchat.gate.models import ToolCall
from hitlchat.upstreams.models import ComposedTool, ToolState, UpstreamServer

# Schemas may be large, and every call would read and parse them.
_NOT_NEEDED = (
    *("seen", "pinned", "problems", "warnings", "risk_reasons", "server__notes"),
    *("tool__input_schema", "tool__output_schema", "tool__facts"),
)


class NoTarget(Exception):
    """The call may not be sent; why, in words."""


@dataclass(frozen=True)
class Target:
    """`digest`: the fingerprint that was accepted; `name`: what the server calls the tool."""

    server: UpstreamServer
    name: str
    digest: str
    arguments: dict[str, Any]


def target_of(call: ToolCall) -> Target:
    """NoTarget."""
    rows = ComposedTool.objects.select_related("server", "tool").defer(*_NOT_NEEDED).order_by("pk")
    row = rows.filter(tool_id=call.tool_id).first() if call.tool_id else None
    if row is None or row.tool is None:
        raise NoTarget("The tool is not offered any more.")
    if not row.server.enabled:
        raise NoTarget("Its server is disabled.")
    if row.state != ToolState.EXPOSED:
        raise NoTarget(row.reason or "The tool is not exposed.")
    if row.tool.definition_hash != call.definition_hash:
        raise NoTarget("The tool was changed.")
    return Target(row.server, row.name, row.pinned_digest, call.arguments)
