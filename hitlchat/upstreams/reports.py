"""What the processes know of a server's connection, in its row, where all of them and the pages can see it."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from hitlchat.base import database
from hitlchat.base.background import me
from hitlchat.base.canonical import storable
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.lease import SLACK
from hitlchat.upstreams import catalog
from hitlchat.upstreams.models import ServerState, UpstreamServer
from hitlchat.upstreams.wire import Status

# So long the word of a process counts that is connected: others may just have no way to the server.
# It is given anew at least with every look at the connection's health, each half minute.
COUNTS_FOR = timedelta(seconds=75)
MOST_NOTES = 20
_GONE = {ServerState.DOWN, ServerState.SIGN_IN, ServerState.UNUSABLE}


def report(server_id: UUID, revision: int, status: Status) -> bool:
    """Write the status of this process's connection; whether the server's tools are in the catalog now.

    A server that is gone takes its tools out of the catalog. What waits for an answer goes on waiting: the server may
    be back by then, and if not, the call does not start.
    """
    state = _state(status)
    columns: dict[str, Any] = {
        "state": state,
        "reason": "" if state == ServerState.UP else storable(status.last_error),
        "last_error": storable(status.last_error),
        "last_error_at": status.last_error_at,
        "latency_ms": status.latency_ms,
        "protocol_version": storable(status.protocol_version)[:40],
        "told_name": storable(status.server_name)[:200],
        "told_version": storable(status.server_version)[:200],
        "notes": [storable(note) for note in status.notes[-MOST_NOTES:]],
    }
    return _write(server_id, revision, columns)


def report_unusable(server_id: UUID, revision: int, why: str) -> None:
    """It cannot even be tried."""
    _write(server_id, revision, {"state": ServerState.UNUSABLE, "reason": storable(why)})


def fall_silent() -> None:
    """This process ends: what it said of its connections does not count any more."""
    UpstreamServer.objects.filter(reported_by=me()).update(reported_at=None)


def _state(status: Status) -> ServerState:
    if status.state == "down" and status.http_status == 401:
        return ServerState.SIGN_IN
    if status.state == "down" and not status.last_error:
        # Not tried yet: that is no reason to take anything out of the catalog.
        return ServerState.CONNECTING
    return ServerState(status.state)


def _write(server_id: UUID, revision: int, columns: dict[str, Any]) -> bool:
    with transaction.atomic():
        row = UpstreamServer.objects.select_for_update().filter(pk=server_id, revision=revision, enabled=True)
        server = row.first()
        if server is None:
            return True
        if columns["state"] != ServerState.UP and _another_is_connected(row):
            return server.present
        if columns["state"] in _GONE and server.present:
            server.present = False
            catalog.keep_catalog(server, SYSTEM)
        who = {"reported_by": me(), "reported_at": database.now(), "present": server.present}
        UpstreamServer.objects.filter(pk=server_id).update(**columns, **who)
        return server.present


def _another_is_connected(row: QuerySet[UpstreamServer]) -> bool:
    lately = (Now() - COUNTS_FOR, Now() + SLACK)
    return row.filter(state=ServerState.UP, reported_at__range=lately).exclude(reported_by=me()).exists()
