"""The history of accepted tools and of servers, only added to; and signals that wake whoever shows them."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.dispatch import Signal

from hitlchat.gate.actor import Actor
from hitlchat.gate.transition import note
from hitlchat.upstreams.models import ComposedTool, ToolEvent, UpstreamServer

# Sent after the commit; from whichever thread made the change.
servers_changed = Signal()
# Sent with call_id, conversation_id and step while a call goes on, on the loop that executes it; receivers must not
# take long. No more than a few a second: nobody reads faster, and each of them goes to every open page.
progressed = Signal()


def wake() -> None:
    transaction.on_commit(_send, robust=True)


def _send() -> None:
    servers_changed.send_robust(sender=None)


AT_A_TIME = 500
# What the record says of a server. Of addresses, headers and arguments, which may be secret, only that they changed.
SERVER_SETTINGS = ("name", "transport", "enabled", "trust", "allow_private", "docs_adequate", "gallery_entry")


def event(
    tool: ComposedTool, server: UpstreamServer, name: str, actor: Actor, *, pinned: bool = False, **data: Any
) -> ToolEvent:
    """Return an event, not stored yet. `pinned`: with the record that was accepted; else the one that was seen."""
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


def note_accepted(tool: ComposedTool, actor: Actor, before: str) -> None:
    """Put on record that somebody accepted what the server lists now; `before`: the digest accepted until then."""
    data = {
        "tool": tool.tool.name if tool.tool else tool.name,
        "server": tool.server.name,
        "listedAs": tool.name,
        "before": {"digest": before},
        "after": {"digest": tool.pinned_digest},
    }
    note(None, "tool.accepted", actor=actor, data=data)


def server_settings(server: UpstreamServer) -> dict[str, Any]:
    """Return what the record says of a server."""
    return {name: getattr(server, name) for name in SERVER_SETTINGS}


def note_server(
    name: str,
    server: UpstreamServer,
    actor: Actor,
    before: dict[str, Any],
    after: dict[str, Any],
    *,
    also: Iterable[str] = (),
) -> None:
    """Put on record what became of a server; `also`: what changed besides, without its values."""
    differing = [field for field in SERVER_SETTINGS if before.get(field) != after.get(field)]
    data: dict[str, Any] = {
        "server": server.name,
        "before": {field: before[field] for field in differing if field in before},
        "after": {field: after[field] for field in differing if field in after},
        "also": list(also),
    }
    note(None, name, actor=actor, data=data)
