"""The connections of this process, kept in step with the rows: opened, followed, reported, tried, closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import transaction
from django.db.models.functions import Now

from hitlchat.base import database
from hitlchat.base.background import Worker, me
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.lease import SLACK
from hitlchat.base.sentences import translatable
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import ToolCall
from hitlchat.upstreams import catalog, discovery, endpoint
from hitlchat.upstreams.catalog import CHANGED
from hitlchat.upstreams.client import link
from hitlchat.upstreams.client.connection import Connection, Status, Trial, try_connect
from hitlchat.upstreams.client.listing import Listing, ListingFailed
from hitlchat.upstreams.client.results import NeverRan, Outcome
from hitlchat.upstreams.discovery import Listed
from hitlchat.upstreams.models import AWAY, ComposedTool, ServerState, ToolState, UpstreamServer
from hitlchat.upstreams.oauth.tokens import credential
from hitlchat.upstreams.risk import fingerprint

# How long the report of a connected process outweighs those of others, which may just not reach the server. It is
# repeated at least with each health check, twice a minute.
COUNTS_FOR = timedelta(seconds=75)
MOST_NOTES = 20
LOOK_SECONDS = 2.0
# Schemas may be large, and every call would read and parse them.
_NOT_NEEDED = (
    *("seen", "pinned", "problems", "warnings", "risk_reasons", "server__notes"),
    *("tool__input_schema", "tool__output_schema", "tool__facts"),
)


def report(server_id: UUID, revision: int, status: Status) -> bool:
    """Store the status of this connection; return whether the tools are in the catalog. Waiting calls go on waiting."""
    state = ServerState(status.state)
    if status.state == "down" and status.http_status == 401:
        state = ServerState.SIGN_IN
    elif status.state == "down" and not status.last_error:
        # Not tried yet, which is no reason to remove tools from the catalog.
        state = ServerState.CONNECTING
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


def fall_silent() -> None:
    """Withdraw the reports of this process, which ends."""
    UpstreamServer.objects.filter(reported_by=me()).update(reported_at=None)


def _write(server_id: UUID, revision: int, columns: dict[str, Any]) -> bool:
    with transaction.atomic():
        row = UpstreamServer.objects.select_for_update().filter(pk=server_id, revision=revision, enabled=True)
        server = row.first()
        if server is None:
            return True
        others = row.filter(state=ServerState.UP, reported_at__range=(Now() - COUNTS_FOR, Now() + SLACK))
        if columns["state"] != ServerState.UP and others.exclude(reported_by=me()).exists():
            return server.present
        if columns["state"] in AWAY and server.present:
            server.present = False
            catalog.keep_catalog(server, SYSTEM)
        who = {"reported_by": me(), "reported_at": database.now(), "present": server.present}
        UpstreamServer.objects.filter(pk=server_id).update(**columns, **who)
        return server.present


class NoTarget(Exception):
    """The call may not be sent; why, in words."""


def target_of(call: ToolCall) -> ComposedTool:
    """Return the tool to which a call goes, with its server. Raises: NoTarget"""
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
    return row


@dataclass
class Tracked:
    """One server as this process follows it. `problem`: why it is not even tried; `recorded`: the list on record;
    `reading`: one on its way, for all who wait for it; `lost`: how often the connection was not there.
    """

    server_id: UUID
    revision: int
    identity: fingerprint.Connection
    connection: Connection | None = None
    problem: str = ""
    is_unreported: bool = True
    listed: Listed | None = None
    recorded: Listing | None = None
    reading: "asyncio.Task[Listing] | None" = None
    lost: int = 0
    recording: asyncio.Lock = field(default_factory=asyncio.Lock)


class Upkeep:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._tracked: dict[str, Tracked] = {}
        self._changing = asyncio.Lock()
        self.worker = Worker("upstreams", self._take_turn, LOOK_SECONDS)

    async def _take_turn(self) -> None:
        await self.look()
        await self.report()

    async def look(self) -> None:
        """Bring the connections in line with the rows, and connect."""
        rows = {row.name: row for row in await in_db(lambda: list(UpstreamServer.objects.filter(enabled=True)))()}
        for name in self._tracked.keys() - rows.keys():
            async with self._changing:
                await self._forget(name)
        for row in rows.values():
            tracked = await self._server(row)
            if tracked.connection is not None:
                tracked.connection.start()
            elif tracked.is_unreported:
                tracked.is_unreported = False
                columns = {"state": ServerState.UNUSABLE, "reason": storable(tracked.problem)}
                await in_db(_write)(tracked.server_id, tracked.revision, columns)

    async def report(self) -> None:
        """Write back what has changed, and record what could not be recorded when it came."""
        for tracked in list(self._tracked.values()):
            if tracked.connection is None or not tracked.is_unreported:
                continue
            # Not while a list is recorded: reporting an earlier loss would remove the tools that this list brings back.
            async with tracked.recording:
                # Reset first, so that changes during the report are reported next time.
                tracked.is_unreported = False
                if not await in_db(report)(tracked.server_id, tracked.revision, tracked.connection.status):
                    tracked.recorded = None
        for tracked in list(self._tracked.values()):
            await self._record(tracked)

    async def call(self, target: ComposedTool, arguments: dict[str, Any], **how: Any) -> Outcome:
        """Forward a call, if the server still lists the tool as it was accepted; `how`: the rest of a link.ToolCall."""
        tracked = await self._server(target.server)
        if (connection := tracked.connection) is None:
            return NeverRan(tracked.problem)
        check = partial(self._check, tracked, connection, target)
        return await connection.call_tool(link.ToolCall(target.name, arguments, check=check, **how))

    async def close(self) -> None:
        """Close all connections, at the same time and within bounded time."""
        async with self._changing:
            open_ones = [tracked.connection for tracked in self._tracked.values() if tracked.connection]
            self._tracked.clear()
            await asyncio.gather(*(connection.close() for connection in open_ones))

    async def _server(self, row: UpstreamServer) -> Tracked:
        """Return the server as `row` has it, with its connection. Of two that differ the newer one counts."""
        # Without the lock, which is held while other servers' connections are closed.
        if (tracked := self._current(row)) is not None:
            return tracked
        async with self._changing:
            if (tracked := self._current(row)) is not None:
                return tracked
            await self._forget(row.name)
            fresh = Tracked(row.pk, row.revision, endpoint.connection_of(row))
            try:
                spec, auth = endpoint.spec_of(row), await in_db(credential)(row)
            except endpoint.Unusable as error:
                fresh.problem = str(error)
            else:
                has_tools, has_status = partial(self._has_tools, fresh), partial(_has_status, fresh)
                fresh.connection = Connection(spec, auth=auth, on_tools=has_tools, on_status=has_status)
            self._tracked[row.name] = fresh
            return fresh

    def _current(self, row: UpstreamServer) -> Tracked | None:
        tracked = self._tracked.get(row.name)
        is_current = tracked is not None and tracked.server_id == row.pk and tracked.revision >= row.revision
        return tracked if is_current else None

    async def _forget(self, name: str) -> None:
        tracked = self._tracked.pop(name, None)
        if tracked is not None and tracked.connection is not None:
            await tracked.connection.close()

    async def _check(self, tracked: Tracked, connection: Connection, target: ComposedTool) -> str:
        """Return why the call may not be sent over the connection that is open; empty if it may."""
        if self._tracked.get(target.server.name) is not tracked or tracked.revision != target.server.revision:
            return "its server was changed just now"
        listed, lost = tracked.listed, tracked.lost
        if listed is None or listed.is_stale or connection.has_news or listed.lacks(target.name):
            try:
                listed = tracked.listed = Listed(await _read(tracked, connection), tracked.identity)
            except ListingFailed as error:
                return translatable(f"what its server offers could not be read: {error}")
            if tracked.lost != lost:
                tracked.listed = None
                return "the connection to its server broke just now"
        if listed.digest(target.name) == target.pinned_digest:
            return ""
        await self._record(tracked)
        return listed.why_missing(target.name) or CHANGED[:1].lower() + CHANGED[1:].rstrip(".")

    async def _record(self, tracked: Tracked) -> None:
        """Compare the newest list with the ledger, unless that was done."""
        async with tracked.recording:
            if tracked.listed is None:
                return
            listing = tracked.listed.listing
            # An equal list becomes the same object, which makes the next comparison fast.
            if tracked.recorded == listing or await discovery.take_in(tracked.server_id, tracked.revision, listing):
                tracked.recorded = listing

    async def _has_tools(self, tracked: Tracked, listing: Listing) -> None:
        tracked.listed = Listed(listing, tracked.identity)
        await self._record(tracked)


async def _read(tracked: Tracked, connection: Connection) -> Listing:
    """Return what the server lists now, read once for all who ask at the same time. Raises: ListingFailed"""
    if tracked.reading is None or tracked.reading.done():
        tracked.reading = asyncio.create_task(connection.list_tools())
    # Shielded: if one of them is cancelled, the others still wait.
    return await asyncio.shield(tracked.reading)


def _has_status(tracked: Tracked, status: Status) -> None:
    if status.state != "up":
        # Over the next connection there may be another server.
        tracked.listed = None
        tracked.lost += 1
    tracked.is_unreported = True


_serving: Upkeep | None = None


async def serve() -> None:
    """Keep all servers until cancelled, for the server process. What is executing then still needs them: `end` it."""
    global _serving  # noqa: PLW0603
    _serving = Upkeep()
    await _serving.worker.work()


async def end() -> None:
    """Close what `serve` has opened, and tell the other processes."""
    global _serving
    ended, _serving = _serving, None
    if ended is not None and ended.loop is asyncio.get_running_loop():
        await ended.close()
        await in_db(fall_silent)()


@asynccontextmanager
async def upkeep() -> AsyncIterator[Upkeep]:
    """Lend the connections of the server process; other processes open their own and close them afterwards."""
    if _serving is not None and _serving.loop is asyncio.get_running_loop():
        yield _serving
        return
    once = Upkeep()
    try:
        yield once
    finally:
        await once.close()


def on_servers_changed(**_: Any) -> None:
    if _serving is not None:
        _serving.worker.wake()


def attempt(server: UpstreamServer) -> Trial:
    """Connect to a row, saved or not, read its list of tools, and disconnect, in up to a minute. Secrets are masked."""
    try:
        spec = endpoint.spec_of(server)
    except endpoint.Unusable as error:
        return Trial(error=str(error))
    return async_to_sync(try_connect)(spec, auth=credential(server))
