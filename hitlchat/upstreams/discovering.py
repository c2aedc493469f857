"""Discovery: what a server lists, compared with what was accepted. Nothing new, changed or gone is called."""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool
from hitlchat.upstreams import catalog, exposure, judging, reaching
from hitlchat.upstreams.client import Listing, UpstreamTool
from hitlchat.upstreams.judging import Judged, Judgement, offered_of
from hitlchat.upstreams.models import ComposedTool, UpstreamServer
from hitlchat.upstreams.risk import offered
from hitlchat.upstreams.risk.difference import difference
from hitlchat.upstreams.risk.offered import Connection, Unusable
from hitlchat.upstreams.risk.scan import Known
from hitlchat.upstreams.risk.server import ServerFacts


@dataclass(frozen=True)
class Listed:
    listing: Listing
    connection: Connection
    at: float = field(default_factory=time.monotonic)
    _tools: dict[str, UpstreamTool] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)

    @property
    def is_stale(self) -> bool:
        return time.monotonic() - self.at > settings.MCP_LIST_SECONDS

    def digest(self, name: str) -> str:
        """The fingerprint of the tool as it is listed; empty if it is not, or cannot have one."""
        if name not in self._digests:
            self._digests[name] = self._digest(name)
        return self._digests[name]

    def _digest(self, name: str) -> str:
        if not self._tools:
            self._tools.update({tool.name: tool for tool in self.listing.tools})
        tool = self._tools.get(name)
        try:
            return offered.pin(offered_of(tool), self.connection).digest if tool else ""
        except (Unusable, canonical.NotJson):
            return ""


logger = logging.getLogger(__name__)

MOST_KNOWN = 10_000
ATTEMPTS = 3
# Servers that offer thousands of tools, and others all the time, must not fill the threads that everything else needs.
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="upstream-judge")
_SEEN = ["seen", "seen_digest", "seen_profile", "seen_at", "problems", "warnings", "listed", "held"]
_PINNED = ["pinned", "pinned_digest", "pinned_profile"]
WRITTEN = [*_SEEN, *_PINNED, "state", "reason", *catalog.RISK_COLUMNS]


@dataclass(frozen=True)
class Asked:
    """The facts that judging a list takes from the database."""

    connection: Connection
    facts: ServerFacts
    known: Known


async def take_in(server_id: UUID, revision: int, listing: Listing) -> bool:
    """Record what the server lists over the connection of this revision; False if it is not the present one."""
    for _ in range(ATTEMPTS):
        asked = await in_db(_asked)(server_id, revision)
        if asked is None:
            return False
        # In a thread that nobody else waits for: thousands of tools take seconds.
        judging_it = partial(judging.judge, listing, asked.connection, asked.facts, asked.known)
        judgement = await asyncio.get_running_loop().run_in_executor(_THREADS, judging_it)
        if await in_db(record)(server_id, revision, judgement, asked.facts):
            return True
    logger.warning("What an upstream server lists was not recorded: it is being changed all the time")
    return False


def _asked(server_id: UUID, revision: int) -> Asked | None:
    server = UpstreamServer.objects.filter(pk=server_id, revision=revision, enabled=True).first()
    if server is None:
        return None
    facts = reaching.facts_of(server, writes=True)
    return Asked(reaching.connection_of(server), facts, known_to(server))


def known_to(server: UpstreamServer) -> Known:
    """The names of tools and servers other than `server` and its own."""
    tools = Tool.objects.exclude(composed__server=server).filter(published=True)
    servers = UpstreamServer.objects.exclude(pk=server.pk)
    return Known(
        frozenset(tools.values_list("name", flat=True)[:MOST_KNOWN]),
        frozenset(servers.values_list("name", flat=True)[:MOST_KNOWN]),
    )


def record(server_id: UUID, revision: int, judgement: Judgement, facts: ServerFacts) -> bool:
    """All of it or nothing; False if the server is another one by now than was judged."""
    with transaction.atomic():
        found = UpstreamServer.objects.select_for_update().filter(pk=server_id, revision=revision, enabled=True)
        server = found.first()
        if server is None or reaching.facts_of(server, writes=True) != facts:
            return False
        _record(server, judgement)
    return True


def _record(server: UpstreamServer, judgement: Judgement) -> None:
    rows = {row.name: row for row in server.tools.select_related("tool").select_for_update(of=("self",))}
    before = {row.pk: _columns(row) for row in rows.values()}
    server.writes, server.present = judgement.writes, True
    fresh = [_new(server, judged) for name, judged in judgement.tools.items() if name not in rows]
    update = catalog.Update(server, exposure.standing().ceiling, SYSTEM)
    for row in (*rows.values(), *fresh):
        judged = judgement.tools.get(row.name)
        if judged is None:
            row.listed = False
        else:
            _see(row, judged, update)
        update.follow(row, judged.own if judged else None)
    _store(list(rows.values()), fresh, before)
    columns = {"writes": server.writes, "present": True, "tool_count": len(judgement.tools)}
    noted = {"listing_note": storable(judgement.note), "listed_at": timezone.now()}
    UpstreamServer.objects.filter(pk=server.pk).update(**columns, **noted)
    update.finish()


def _new(server: UpstreamServer, judged: Judged) -> ComposedTool:
    pinned = judged.pinned
    seen = {"seen": pinned.record, "seen_digest": pinned.digest, "seen_profile": pinned.profile}
    return ComposedTool(server=server, name=judged.name, **seen)


def _see(row: ComposedTool, judged: Judged, update: catalog.Update) -> None:
    pinned = judged.pinned
    if row.pinned_digest and pinned.profile != row.pinned_profile and not difference(row.pinned, pinned.record):
        # The same by newer rules.
        row.pinned, row.pinned_digest, row.pinned_profile = pinned.record, pinned.digest, pinned.profile
        update.add(row, "tool.pinned_anew", pinned=True)
    # Once held, it is held until someone looked: also if it is changed back.
    row.held = row.held or bool(row.pinned_digest and pinned.digest != row.pinned_digest)
    if pinned.digest != row.seen_digest or pinned.profile != row.seen_profile:
        row.seen, row.seen_digest, row.seen_profile = pinned.record, pinned.digest, pinned.profile
        row.seen_at = timezone.now()
    row.listed = True
    row.problems = [storable(problem) for problem in judged.problems]
    row.warnings = judging.as_json(judged.findings)


def _store(rows: list[ComposedTool], fresh: list[ComposedTool], before: dict[UUID, Any]) -> None:
    # What nobody ever took an interest in leaves no trace: a server may have other names every time.
    forgotten = [row.pk for row in rows if not row.listed and row.tool_id is None]
    ComposedTool.objects.filter(pk__in=forgotten).delete()
    changed = [row for row in rows if row.pk not in set(forgotten) and _columns(row) != before[row.pk]]
    catalog.store(changed, WRITTEN)
    ComposedTool.objects.bulk_create(fresh, batch_size=catalog.AT_A_TIME)


def _columns(row: ComposedTool) -> tuple[Any, ...]:
    """Return what might be written, without the records: their hashes say as much."""
    return tuple(getattr(row, name) for name in WRITTEN if name not in {"seen", "pinned", "seen_at"})
