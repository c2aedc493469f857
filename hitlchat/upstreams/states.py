"""States of upstream servers, of what is offered of them, and of the history of their tools, for the record."""

from collections.abc import Collection
from typing import Any, Final

from hitlchat.base import canonical
from hitlchat.gate.transition import facts_digest
from hitlchat.secrets.sealing import fingerprints
from hitlchat.upstreams.models import Exposure, ToolEvent, UpstreamServer

AT_A_TIME: Final = 100
# What the record says of a server. Of addresses, headers and arguments, which may be secret, only that they changed.
SERVER_SETTINGS = ("name", "transport", "enabled", "trust", "allow_private", "docs_adequate", "gallery_entry")

# How it is reached, by what the record calls it. What is secret of it is sealed in the row.
REACHED: Final = {"reached": ("url", "command", "args"), "headers_and_variables": ("headers", "env")}


def server_settings(server: UpstreamServer) -> dict[str, Any]:
    """Return the settings of a server that the record keeps."""
    return {name: getattr(server, name) for name in SERVER_SETTINGS}


def servers(keys: Collection[str] | None) -> dict[str, dict[str, Any]]:
    """Return what the record states of servers: of how they are reached, which may be secret, only fingerprints."""
    rows = UpstreamServer.objects.all() if keys is None else UpstreamServer.objects.filter(pk__in=keys)
    return {
        str(server.pk): server_settings(server)
        | {
            fact: fingerprints(canonical.dumps([getattr(server, name) for name in names]), "server")
            for fact, names in REACHED.items()
        }
        for server in rows.order_by("pk")
    }


def exposure(_keys: Collection[str] | None) -> dict[str, dict[str, Any]]:
    """Return what the record states of the exposure, of which there is one."""
    current = Exposure.current()
    return {"": {"mode": current.mode, "ceiling": current.ceiling}}


def tool_events(keys: Collection[str] | None) -> dict[str, dict[str, Any]]:
    """Return what the record states of the events of tools: a digest of all columns that stay as they were."""
    rows = ToolEvent.objects.all() if keys is None else ToolEvent.objects.filter(pk__in=keys)
    columns = ("server_name", "tool_name", "name", "actor_id", "means", "digest", "record", "data", "at")
    return {
        str(row.pk): {"digest": facts_digest({name: getattr(row, name) for name in columns})}
        for row in rows.order_by("pk").iterator(chunk_size=AT_A_TIME)
    }
