"""The history of each tool that someone has accepted once: only added to."""

from collections.abc import Iterable
from typing import Any

from hitlchat.gate.actor import Actor
from hitlchat.upstreams.models import ComposedTool, ToolEvent, UpstreamServer

AT_A_TIME = 500


def event(
    tool: ComposedTool, server: UpstreamServer, name: str, actor: Actor, *, pinned: bool = False, **data: Any
) -> ToolEvent:
    """Not stored yet. `pinned`: with the record that was accepted; else, where it changed, the one that was seen."""
    record = tool.pinned if pinned else tool.seen
    return ToolEvent(
        tool=tool,
        server_name=server.name,
        tool_name=tool.name,
        name=name,
        actor_id=actor.user_id,
        means=actor.means,
        digest=tool.pinned_digest if pinned else tool.seen_digest,
        record=record if pinned or name == "tool.changed" else None,
        data=data,
    )


def store(events: Iterable[ToolEvent]) -> None:
    ToolEvent.objects.bulk_create(events, batch_size=AT_A_TIME)
