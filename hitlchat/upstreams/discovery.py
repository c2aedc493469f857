"""Discovery: what a server lists, judged and compared with what was accepted. Nothing new or changed is called."""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.gate.actor import SYSTEM
from hitlchat.upstreams import catalog, endpoint
from hitlchat.upstreams.client.listing import Listing, UpstreamTool, named
from hitlchat.upstreams.models import ComposedTool, UpstreamServer
from hitlchat.upstreams.risk import limits
from hitlchat.upstreams.risk.fingerprint import Connection, Offered, Pinned, Unusable, difference, pin
from hitlchat.upstreams.risk.limits import left_to_the_server
from hitlchat.upstreams.risk.rubric import Assessment, ServerFacts, assess_tool, says_it_writes
from hitlchat.upstreams.risk.scan import Finding, OtherNames, as_json, scan

LONGEST_NAMED = 40
ATTEMPTS = 3
# Servers that offer thousands of tools, and others all the time, must not fill the threads that everything else needs.
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="upstream-judge")
WRITTEN = [
    *("seen", "seen_digest", "seen_profile", "seen_at", "problems", "warnings", "listed", "held"),
    *("pinned", "pinned_digest", "pinned_profile", "state", "reason", "vouched_digest"),
    *catalog.RISK_COLUMNS,
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Judged:
    """One tool of a list: its fingerprint, why it cannot be offered, what looks suspicious, and how risky it is."""

    pinned: Pinned
    problems: tuple[str, ...]
    findings: tuple[Finding, ...]
    own: Assessment
    writes: bool


@dataclass(frozen=True)
class Judgement:
    """A whole list. `note`: what was left out; `unread`: why, by name; `is_whole`: a tool that is not there is gone."""

    tools: dict[str, Judged]
    note: str
    unread: dict[str, str] = field(default_factory=dict)
    is_whole: bool = True


def judge(listing: Listing, connection: Connection, facts: ServerFacts, others: OtherNames) -> Judgement:
    """Raises: ValueError, the connection's URL cannot be understood"""
    tools: dict[str, Judged] = {}
    odd: list[str] = []
    for tool in listing.tools:
        judged = _judged(tool, connection, facts, others)
        if judged is None:
            odd.append(tool.name)
        else:
            tools[tool.name] = judged
    unread = dict(listing.unread) | dict.fromkeys(odd, "it cannot be stored")
    notes = [listing.trouble] if listing.trouble else []
    if listing.repeated:
        repeated = named(listing.repeated, LONGEST_NAMED)
        notes.append(translatable(f"duplicate names, of which only the first is used: {repeated}"))
    if odd:
        notes.append(translatable(f"tools whose name or definition cannot be stored: {named(odd, LONGEST_NAMED)}"))
    return Judgement(tools, "; ".join(notes), unread, is_whole=not listing.cut)


def _judged(tool: UpstreamTool, connection: Connection, facts: ServerFacts, others: OtherNames) -> Judged | None:
    """Judge one tool; None if it cannot even be stored as a row."""
    # U+FFFD stands for what could not be read: under this name its server does not know it.
    can_be_kept = len(tool.name) <= limits.LONGEST_NAME and storable(tool.name) == tool.name
    if not can_be_kept or not tool.name.strip() or "\ufffd" in tool.name:
        return None
    try:
        offered = Offered.from_json(tool.definition)
        pinned = pin(offered, connection)
    except (Unusable, canonical.NotJson):
        return None
    problems = tuple(f"{each.where}: {each.sentence}" for each in limits.problems(offered))
    if not problems:
        # Its patterns are compiled here, in a thread that holds no lock, and not in the transaction that exposes it.
        for schema in filter(None, (offered.input_schema, offered.output_schema)):
            left_to_the_server(schema)
    return Judged(
        pinned=pinned,
        problems=problems,
        findings=scan(offered, others),
        own=assess_tool(offered, facts),
        writes=says_it_writes(offered),
    )


@dataclass
class Listed:
    """A list as it came over a connection, for the calls that are checked against it."""

    listing: Listing
    connection: Connection
    at: float = field(default_factory=time.monotonic)
    _digests: dict[str, str] = field(default_factory=dict)

    @property
    def is_stale(self) -> bool:
        return time.monotonic() - self.at > settings.MCP_LIST_SECONDS

    def digest(self, name: str) -> str:
        """Return the fingerprint of the tool as listed; empty if it is not listed, or cannot have one."""
        if name not in self._digests:
            tool = self.tools.get(name)
            try:
                found = pin(Offered.from_json(tool.definition), self.connection).digest if tool else ""
            except (Unusable, canonical.NotJson):
                found = ""
            self._digests[name] = found
        return self._digests[name]

    @cached_property
    def tools(self) -> dict[str, UpstreamTool]:
        return {tool.name: tool for tool in self.listing.tools}

    def lacks(self, name: str) -> bool:
        """Return whether the tool may be in the part of the list that was not read."""
        return bool(self.listing.cut) and name not in self.tools

    def why_missing(self, name: str) -> str:
        """Return why the tool is not in the list, as the end of a sentence; empty if it is there."""
        if name in self.tools:
            return ""
        if why := self.listing.unread.get(name):
            return translatable(f"its server's entry for it cannot be read: {why}")
        if self.listing.cut:
            return translatable(f"its server's list is incomplete, and the tool is not in it ({self.listing.cut})")
        return "its server no longer lists it"


async def take_in(server_id: UUID, revision: int, listing: Listing) -> bool:
    """Record what the server lists over the connection of this revision; False if it is not the present one."""
    for _ in range(ATTEMPTS):
        premises = await in_db(_premises)(server_id, revision)
        if premises is None:
            return False
        connection, facts, others = premises
        # In a thread that nobody else waits for: thousands of tools take seconds.
        loop = asyncio.get_running_loop()
        judgement = await loop.run_in_executor(_THREADS, judge, listing, connection, facts, others)
        if await in_db(record)(server_id, revision, judgement, facts):
            return True
    logger.warning("An upstream server's list was not recorded: it keeps changing")
    return False


def _premises(server_id: UUID, revision: int) -> tuple[Connection, ServerFacts, OtherNames] | None:
    """Return the facts that judging a list takes from the database; None if the revision is not the present one."""
    server = UpstreamServer.objects.filter(pk=server_id, revision=revision, enabled=True).first()
    if server is None:
        return None
    return endpoint.connection_of(server), endpoint.facts_of(server, writes=True), catalog.other_names(server)


def record(server_id: UUID, revision: int, judgement: Judgement, facts: ServerFacts) -> bool:
    """Store a judgement, all or nothing; False if the server has changed since it was judged."""
    with transaction.atomic():
        found = UpstreamServer.objects.select_for_update().filter(pk=server_id, revision=revision, enabled=True)
        server = found.first()
        if server is None or endpoint.facts_of(server, writes=True) != facts:
            return False
        _record(server, judgement)
    return True


def _record(server: UpstreamServer, judgement: Judgement) -> None:
    rows = {row.name: row for row in server.tools.select_related("tool").select_for_update(of=("self",))}
    before = {row.pk: _columns(row) for row in rows.values()}
    # What is missing may be what writes.
    unseen = server.writes and not (judgement.is_whole and not judgement.unread)
    server.writes, server.present = unseen or any(judged.writes for judged in judgement.tools.values()), True
    fresh = [
        ComposedTool(
            server=server,
            name=name,
            seen=judged.pinned.record,
            seen_digest=judged.pinned.digest,
            seen_profile=judged.pinned.profile,
        )
        for name, judged in judgement.tools.items()
        if name not in rows
    ]
    update = catalog.Update(server, SYSTEM)
    for row in (*rows.values(), *fresh):
        judged = judgement.tools.get(row.name)
        if judged is not None:
            _see(row, judged, update)
        elif why := judgement.unread.get(row.name):
            row.listed = True
            row.problems = [storable(translatable(f"The server's definition of the tool cannot be read: {why}."))]
        elif judgement.is_whole:
            row.listed = False
        update.follow(row, judged.own if judged else None)
    _store(list(rows.values()), fresh, before)
    UpstreamServer.objects.filter(pk=server.pk).update(
        writes=server.writes,
        present=True,
        tool_count=len(judgement.tools),
        listing_note=storable(judgement.note),
        listed_at=timezone.now(),
    )
    update.finish()


def _see(row: ComposedTool, judged: Judged, update: catalog.Update) -> None:
    pinned = judged.pinned
    if row.pinned_digest and pinned.profile != row.pinned_profile and not difference(row.pinned, pinned.record):
        # The same by newer rules.
        row.vouched_digest = pinned.digest if row.vouched_digest == row.pinned_digest else row.vouched_digest
        row.pinned, row.pinned_digest, row.pinned_profile = pinned.record, pinned.digest, pinned.profile
        update.add(row, "tool.pinned_anew", pinned=True)
    # Once held, it is held until someone looked: also if it is changed back.
    row.held = row.held or bool(row.pinned_digest and pinned.digest != row.pinned_digest)
    if pinned.digest != row.seen_digest or pinned.profile != row.seen_profile:
        row.seen, row.seen_digest, row.seen_profile = pinned.record, pinned.digest, pinned.profile
        row.seen_at = timezone.now()
    row.listed = True
    row.problems = [storable(problem) for problem in judged.problems]
    row.warnings = as_json(judged.findings)


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
