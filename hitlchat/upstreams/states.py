"""The state of an upstream's tool, as it follows from what is known of it. Pure."""

from hitlchat.upstreams.models import ComposedTool, ToolState

CHANGED = "Its server changed its definition after it was accepted."


def state_of(tool: ComposedTool, ceiling: int) -> tuple[ToolState, str]:
    """With the reason, where there is something to say. Nothing but EXPOSED may ever be called."""
    if not tool.listed:
        return ToolState.GONE, "Its server does not list it any more."
    if tool.problems:
        return ToolState.UNFIT, " ".join(tool.problems)
    if not tool.exposed:
        return (ToolState.HIDDEN if tool.tool_id else ToolState.NEW), ""
    if tool.held or tool.seen_digest != tool.pinned_digest or tool.seen_profile != tool.pinned_profile:
        return ToolState.WITHHELD, CHANGED
    if tool.risk_inherent > ceiling:
        return ToolState.WITHHELD, f"Its risk is L{tool.risk_inherent}; at most L{ceiling} is offered here."
    return ToolState.EXPOSED, ""


def move(tool: ComposedTool, ceiling: int) -> ToolState | None:
    """Bring the state up to date; the one before if it is another one now."""
    before = ToolState(tool.state)
    tool.state, tool.reason = state_of(tool, ceiling)
    return before if before != tool.state else None
