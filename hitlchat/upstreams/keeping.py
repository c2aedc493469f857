"""The connections of this process, kept in step with the rows: opened, followed, reported, closed."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from hitlchat.base.database import in_db
from hitlchat.upstreams import discovering, reaching, reports
from hitlchat.upstreams.around import around
from hitlchat.upstreams.judge.offered import Connection
from hitlchat.upstreams.listed import Listed
from hitlchat.upstreams.models import UpstreamServer
from hitlchat.upstreams.signing_in import holding
from hitlchat.upstreams.states import CHANGED
from hitlchat.upstreams.targets import Target
from hitlchat.upstreams.waking import servers_changed
from hitlchat.upstreams.wire import Listing, ListingFailed, NeverRan, Outcome, Pool, Status

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0


@dataclass
class Known:
    """One server as this process knows it. `problem`: why it is not even tried. `taken`: the list that is recorded;
    `reading`: one that is on its way, for all calls that wait for it; `lost`: so often the connection was not there."""

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
        self._awake = asyncio.Event()

    def wake(self) -> None:
        """Look at the rows now; from any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._awake.set)

    async def serve(self) -> None:
        """Keep all enabled servers connected; ends only by being cancelled."""
        while True:
            self._awake.clear()
            try:
                await self.look()
                await self.report()
            except Exception:
                # The database may be restarting: that must not end what keeps the servers.
                logger.exception("Looking after the upstream servers failed; it is tried again")
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._awake.wait()
            except TimeoutError:
                continue

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
                await in_db(reports.report_unusable)(known.server_id, known.revision, known.problem)

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
                if not await in_db(reports.report)(known.server_id, known.revision, self._pool.status(name)):
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
        """Have the pool know the server as `row` has it. Of two that differ the newer one counts."""
        # Without the lock: closing another server's connection takes its time.
        if (known := self._current(row)) is not None:
            return known
        async with self._changing:
            if (known := self._current(row)) is not None:
                return known
            await self._forget(row.name)
            fresh = Known(row.pk, row.revision, reaching.connection_of(row))
            try:
                await self._pool.put(reaching.spec_of(row), auth=await in_db(holding.credential)(row))
            except reaching.Unusable as error:
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
        """Why the call may not be sent over the connection that is open; empty if it may."""
        name = target.server.name
        if self._known.get(name) is not known or known.revision != target.server.revision:
            return "its server was changed just now"
        listed, lost = known.listed, known.lost
        if listed is None or listed.is_stale or self._pool.has_news(name):
            try:
                listed = known.listed = Listed(await self._read(known, name), known.connection)
            except ListingFailed as error:
                return f"what its server offers could not be read: {error}"
            if known.lost != lost:
                known.listed = None
                return "the connection to its server broke just now"
        if listed.digest(target.name) == target.digest:
            return ""
        await self._record(known)
        return CHANGED[:1].lower() + CHANGED[1:].rstrip(".")

    async def _read(self, known: Known, name: str) -> Listing:
        """What the server lists now, read once for all who ask at the same time. ListingFailed."""
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
            elif await discovering.take_in(known.server_id, known.revision, listing):
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
    """For the server process: keep all servers until cancelled. What is executing then still needs them: `end` it."""
    global _serving  # noqa: PLW0603
    _serving = Upkeep()
    await _serving.serve()


async def end() -> None:
    """Close what `serve` has opened, and tell the other processes."""
    global _serving
    kept, _serving = _serving, None
    if kept is not None and kept.loop is asyncio.get_running_loop():
        await kept.close()
        await in_db(reports.fall_silent)()


@asynccontextmanager
async def upkeep() -> AsyncIterator[Upkeep]:
    """The connections that the server process keeps; in any other process, ones for this once."""
    if _serving is not None and _serving.loop is asyncio.get_running_loop():
        yield _serving
        return
    once = Upkeep()
    try:
        yield once
    finally:
        await once.close()


def _wake(**_: Any) -> None:
    if _serving is not None:
        _serving.wake()


servers_changed.connect(_wake, dispatch_uid="upstreams")
