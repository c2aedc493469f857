"""The connections of this process, kept in step with the rows: opened, followed, reported, tried, closed."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from hitlchat.base import database
from hitlchat.base.background import Worker, me
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.lease import SLACK
from hitlchat.base.sentences import translatable
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import ToolCall
from hitlchat.upstreams import catalog, discovery, endpoint, server_draft
from hitlchat.upstreams.catalog import CHANGED
from hitlchat.upstreams.client import Listing, ListingFailed, NeverRan, Outcome, Pool, Status, Trial, try_connect
from hitlchat.upstreams.discovery import Listed
from hitlchat.upstreams.endpoint import around
from hitlchat.upstreams.models import AWAY, ComposedTool, ServerState, ToolState, UpstreamServer
from hitlchat.upstreams.oauth.tokens import credential
from hitlchat.upstreams.risk.fingerprint import Connection
from hitlchat.upstreams.server_draft import ServerDraft

# So long the word of a process counts that is connected: others may just have no way to the server.
# It is given anew at least with every look at the connection's health, each half minute.
COUNTS_FOR = timedelta(seconds=75)
MOST_NOTES = 20


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
    """Report that the server cannot even be tried."""
    _write(server_id, revision, {"state": ServerState.UNUSABLE, "reason": storable(why)})


def fall_silent() -> None:
    """Fall silent as this process ends: what it said of its connections does not count any more."""
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
        if columns["state"] in AWAY and server.present:
            server.present = False
            catalog.keep_catalog(server, SYSTEM)
        who = {"reported_by": me(), "reported_at": database.now(), "present": server.present}
        UpstreamServer.objects.filter(pk=server_id).update(**columns, **who)
        return server.present


def _another_is_connected(row: QuerySet[UpstreamServer]) -> bool:
    lately = (Now() - COUNTS_FOR, Now() + SLACK)
    return row.filter(state=ServerState.UP, reported_at__range=lately).exclude(reported_by=me()).exists()


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
    """Return where a call goes.

    Raises: NoTarget
    """
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


logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0


@dataclass
class Known:
    """One server as this process knows it. `problem`: why it is not even tried. `taken`: the list that is recorded;
    `reading`: one that is on its way, for all calls that wait for it; `lost`: so often the connection was not there.
    """

    server_id: UUID
    revision: int
    connection: Connection
    problem: str = ""
    listed: Listed | None = None
    taken: Listing | None = None
    reading: "asyncio.Task[Listing] | None" = None
    lost: int = 0
    recording: asyncio.Lock = field(default_factory=asyncio.Lock)


class Upkeep:
    """The servers of one loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._pool = Pool(around(), on_tools=self._has_tools, on_status=self._has_status)
        self._known: dict[str, Known] = {}
        self._unreported: set[str] = set()
        self._changing = asyncio.Lock()
        self.worker = Worker("upstreams", self._take_turn, LOOK_SECONDS)

    async def _take_turn(self) -> None:
        await self.look()
        await self.report()

    async def look(self) -> None:
        """Make the connections what the rows say, and connect."""
        rows = {row.name: row for row in await in_db(_enabled)()}
        for name in self._known.keys() - rows.keys():
            async with self._changing:
                await self._forget(name)
        for name, row in rows.items():
            if not (known := await self._keep(row)).problem:
                self._pool.connect(name)
            elif name in self._unreported:
                self._unreported.discard(name)
                await in_db(report_unusable)(known.server_id, known.revision, known.problem)

    async def report(self) -> None:
        """Write back what has changed, and record what could not be recorded when it came."""
        for name in self._unreported & self._known.keys():
            known = self._known[name]
            if known.problem:
                continue
            # Not while a list is recorded: that it was gone before would take the tools out that this brings back.
            async with known.recording:
                # Before it is read: what changes while it is being written is reported next time.
                self._unreported.discard(name)
                if not await in_db(report)(known.server_id, known.revision, self._pool.status(name)):
                    known.taken = None
        for known in list(self._known.values()):
            await self._record(known)

    async def call(self, target: Target, **how: Any) -> Outcome:
        """Forward a call, if the server still lists the tool as it was accepted; `how` as for the pool."""
        known = await self._keep(target.server)
        if known.problem:
            return NeverRan(known.problem)

        async def check() -> str:
            return await self._check(known, target)

        return await self._pool.call_tool(target.server.name, target.name, target.arguments, check=check, **how)

    async def close(self) -> None:
        self._known.clear()
        await self._pool.close()

    async def _keep(self, row: UpstreamServer) -> Known:
        """Give the pool the server as `row` has it. Of two that differ the newer one counts."""
        # Without the lock: closing another server's connection takes its time.
        if (known := self._current(row)) is not None:
            return known
        async with self._changing:
            if (known := self._current(row)) is not None:
                return known
            await self._forget(row.name)
            fresh = Known(row.pk, row.revision, endpoint.connection_of(row))
            try:
                await self._pool.put(endpoint.spec_of(row), auth=await in_db(credential)(row))
            except endpoint.Unusable as error:
                fresh.problem = str(error)
            self._known[row.name] = fresh
            self._unreported.add(row.name)
            return fresh

    def _current(self, row: UpstreamServer) -> Known | None:
        known = self._known.get(row.name)
        is_it = known is not None and known.server_id == row.pk and known.revision >= row.revision
        return known if is_it else None

    async def _forget(self, name: str) -> None:
        self._known.pop(name, None)
        await self._pool.remove(name)

    async def _check(self, known: Known, target: Target) -> str:
        """Return why the call may not be sent over the connection that is open; empty if it may."""
        name = target.server.name
        if self._known.get(name) is not known or known.revision != target.server.revision:
            return "its server was changed just now"
        listed, lost = known.listed, known.lost
        if listed is None or listed.is_stale or self._pool.has_news(name) or listed.lacks(target.name):
            try:
                listed = known.listed = Listed(await self._read(known, name), known.connection)
            except ListingFailed as error:
                return translatable(f"what its server offers could not be read: {error}")
            if known.lost != lost:
                known.listed = None
                return "the connection to its server broke just now"
        if listed.digest(target.name) == target.digest:
            return ""
        await self._record(known)
        return listed.why_missing(target.name) or CHANGED[:1].lower() + CHANGED[1:].rstrip(".")

    async def _read(self, known: Known, name: str) -> Listing:
        """Return what the server lists now, read once for all who ask at the same time. ListingFailed."""
        if known.reading is None or known.reading.done():
            known.reading = asyncio.create_task(self._pool.list_tools(name))
        # One of them may be cancelled: the others still wait.
        return await asyncio.shield(known.reading)

    async def _record(self, known: Known) -> None:
        """Compare the newest list with the ledger, unless that was done."""
        async with known.recording:
            if known.listed is None:
                return
            listing = known.listed.listing
            if known.taken == listing:
                # The very same the next time, which is seen at once.
                known.taken = listing
            elif await discovery.take_in(known.server_id, known.revision, listing):
                known.taken = listing

    async def _has_tools(self, name: str, listing: Listing) -> None:
        if (known := self._known.get(name)) is not None:
            known.listed = Listed(listing, known.connection)
            await self._record(known)

    def _has_status(self, name: str, status: Status) -> None:
        if status.state != "up" and (known := self._known.get(name)) is not None:
            # Over the next connection there may be another server.
            known.listed = None
            known.lost += 1
        self._unreported.add(name)


def _enabled() -> list[UpstreamServer]:
    return list(UpstreamServer.objects.filter(enabled=True))


_serving: Upkeep | None = None


async def serve() -> None:
    """Keep all servers until cancelled, for the server process. What is executing then still needs them: `end` it."""
    global _serving  # noqa: PLW0603
    _serving = Upkeep()
    await _serving.worker.work()


async def end() -> None:
    """Close what `serve` has opened, and tell the other processes."""
    global _serving
    kept, _serving = _serving, None
    if kept is not None and kept.loop is asyncio.get_running_loop():
        await kept.close()
        await in_db(fall_silent)()


@asynccontextmanager
async def upkeep() -> AsyncIterator[Upkeep]:
    """Lend the connections of the server process; any other process opens its own and closes them after."""
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
    """Connect to `server`, a row or one that is not saved yet, read its list of tools, and disconnect.

    May take a minute, and never raises for the server's sake. What is secret is masked in all that it says.
    """
    try:
        spec = endpoint.spec_of(server)
    except endpoint.Unusable as error:
        return Trial(str(error))
    return async_to_sync(try_connect)(spec, around(), auth=credential(server))


def unsaved(draft: ServerDraft, standing: UpstreamServer | None = None) -> UpstreamServer:
    """Return what `draft` would be kept as; secrets that are not given again are those of `standing`. BadServer."""
    return UpstreamServer(**server_draft.columns(draft, standing))
