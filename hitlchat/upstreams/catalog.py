"""The rows that exposed tools have in the gate: what they say, whether they are in the catalog, and their history."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.gate import stated, stopping, tools
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import HitlMode, Tool, ToolCall
from hitlchat.gate.stopping import NOT_STARTED
from hitlchat.gate.transition import note
from hitlchat.upstreams import endpoint
from hitlchat.upstreams.models import ComposedTool, Exposure, ToolEvent, ToolState, UpstreamServer
from hitlchat.upstreams.risk.fingerprint import Offered
from hitlchat.upstreams.risk.limits import checkable, unchecked
from hitlchat.upstreams.risk.rubric import Assessment, ServerFacts, assess_server, assess_tool, compose
from hitlchat.upstreams.risk.scan import OtherNames, findings_of, trips

CHANGED = "Its server changed its definition after it was accepted."
SOURCE = "upstream"
LONGEST_TITLE = 120
MOST_REASONS = 6
AT_A_TIME = 100
EVENTS_AT_A_TIME = 500
MOST_KNOWN = 10_000
RISK_COLUMNS = ["risk_inherent", "risk_effective", "risk_floor", "risk_reasons"]
UNSEEN = {ToolState.NEW, ToolState.HIDDEN}
# Why calls of a tool end that was exposed, by the state that it has now.
ENDED = {
    ToolState.GONE: gettext_noop("its server no longer offers the tool"),
    ToolState.HIDDEN: gettext_noop("the tool is no longer exposed"),
    ToolState.UNFIT: gettext_noop("its server changed the tool so that it cannot be offered"),
}


def state_of(tool: ComposedTool, ceiling: int) -> tuple[ToolState, str]:
    """Return the state, with the reason where there is one. Nothing but EXPOSED may ever be called."""
    if not tool.listed:
        return ToolState.GONE, "Its server no longer lists it."
    if tool.problems:
        return ToolState.UNFIT, " ".join(tool.problems)
    if not tool.exposed:
        return (ToolState.HIDDEN if tool.tool_id else ToolState.NEW), ""
    if tool.held or tool.seen_digest != tool.pinned_digest or tool.seen_profile != tool.pinned_profile:
        return ToolState.WITHHELD, CHANGED
    if tool.risk_inherent > ceiling:
        return ToolState.WITHHELD, translatable(
            f"Its risk is L{tool.risk_inherent}; at most L{ceiling} is offered here."
        )
    return ToolState.EXPOSED, ""


def basis_of(row: ComposedTool) -> str:
    if row.standing_vouch:
        return translatable(f"An administrator vouches for it as it is now: its risk is L{row.risk_inherent}.")
    return translatable(f"Nobody here vouches for it: L{row.risk_inherent} is an estimate from what its server says.")


def other_names(server: UpstreamServer) -> OtherNames:
    tools = Tool.objects.exclude(composed__server=server).filter(published=True)
    servers = UpstreamServer.objects.exclude(pk=server.pk)
    return OtherNames(
        frozenset(tools.values_list("name", flat=True)[:MOST_KNOWN]),
        frozenset(servers.values_list("name", flat=True)[:MOST_KNOWN]),
    )


def event_of(
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


def store_events(events: Iterable[ToolEvent], actor: Actor) -> None:
    made = ToolEvent.objects.bulk_create(events, batch_size=EVENTS_AT_A_TIME)
    for start in range(0, len(made), EVENTS_AT_A_TIME):
        keys = [each.pk for each in made[start : start + EVENTS_AT_A_TIME]]
        note(None, "upstream.noted", actor=actor, data=stated.states("tool event", *keys))


def altered() -> Iterator[str]:
    """Yield a sentence for each exposed tool whose rows differ from what was accepted."""
    for server in UpstreamServer.objects.order_by("name"):
        rows = server.tools.filter(state=ToolState.EXPOSED, tool__isnull=False).select_related("tool")
        update = Update(server, SYSTEM)
        for row in rows.order_by("name").iterator(chunk_size=AT_A_TIME):
            assert row.tool is not None
            wanted = update.columns(row, row.tool.name)
            texts = ("title", "description", "input_schema", "output_schema", "definition_hash")
            is_other = any(_differs(getattr(row.tool, name), wanted[name]) for name in texts)
            if is_other or canonical.sha256(row.pinned) != row.pinned_digest:
                yield translatable(
                    f"The tool {row.tool.name} of the server {server.name} does not match what was accepted."
                )


class Update:
    """One change of a server's tools, within one transaction: rows first, then `finish` with all that follows."""

    def __init__(self, server: UpstreamServer, actor: Actor) -> None:
        self.server, self.actor, self.ceiling = server, actor, Exposure.current().ceiling
        self.events: list[ToolEvent] = []
        self._own: dict[str, Assessment] = {}
        self._ended: dict[UUID, str] = {}

    @cached_property
    def _facts(self) -> ServerFacts:
        return endpoint.facts_of(self.server, writes=self.server.writes)

    @cached_property
    def _identity(self) -> str:
        return endpoint.identity_of(self.server)

    @cached_property
    def _secret_names(self) -> list[str]:
        return endpoint.secret_names(self.server)

    def follow(self, row: ComposedTool, own: Assessment | None = None, *, changed: str = "") -> None:
        """Update risk, gate row and state from what `row` is now. `changed`: why it is another tool, if it is."""
        self.assess(row, own)
        if row.tool is not None and self._refresh(row, row.tool):
            self._ended.setdefault(row.tool.pk, changed or gettext_noop("the tool was changed"))
        before = ToolState(row.state)
        row.state, row.reason = state_of(row, self.ceiling)
        if before == row.state or row.tool_id is None:
            return
        name = f"tool.{row.state}"
        if row.state == ToolState.EXPOSED and before not in UNSEEN:
            name = "tool.returned"
        elif row.state == ToolState.WITHHELD and row.held:
            name = "tool.changed"
        self.add(row, name, pinned=name == "tool.exposed", before=before.value, reason=row.reason)
        if before == ToolState.EXPOSED:
            withheld = f"the tool is withheld: {row.reason[:1].lower()}{row.reason[1:].rstrip('.')}"
            self._ended.setdefault(row.tool_id, ENDED.get(ToolState(row.state), withheld))

    def add(self, row: ComposedTool, name: str, *, pinned: bool = False, **data: Any) -> None:
        self.events.append(event_of(row, self.server, name, self.actor, pinned=pinned, **data))

    def assess(self, row: ComposedTool, own: Assessment | None = None) -> None:
        if own is None and (own := self._own.get(row.seen_digest)) is None:
            own = assess_tool(Offered.from_json(row.seen), self._facts)
        self._own[row.seen_digest] = own
        poisoned = trips(findings_of(row.warnings))
        facts = assess_server(self._facts)
        found = compose(facts, own, gated=is_gated(row), poisoned=poisoned, stated=row.stated_risk(row.seen_digest))
        row.risk_inherent, row.risk_effective = found.inherent, found.effective
        row.risk_floor = found.floor.id if found.floor else ""
        row.risk_reasons = list(found.reasons)

    def columns(self, row: ComposedTool, alias: str) -> dict[str, Any]:
        """Return the columns of its row in the gate: as it was accepted, not as it is listed now."""
        record = row.pinned or row.seen
        output = record.get("outputSchema")
        title = record.get("title") or (record.get("annotations") or {}).get("title") or ""
        return {
            "name": alias,
            "title": storable(str(title))[:LONGEST_TITLE],
            "description": storable(row.description or record.get("description", "")),
            # Without what could keep this process busy for years: its server checks that itself.
            "input_schema": checkable(record.get("inputSchema", {})),
            "output_schema": output and checkable(output),
            "source": SOURCE,
            "origin": self.server.origin,
            "risk_level": row.risk_effective,
            "risk_inherent": row.risk_inherent,
            "risk_unknown": not row.standing_vouch,
            "facts": self._sentences(row),
            # All that an approval is for: the accepted fingerprint, what was put over it, and the connection.
            "definition_hash": canonical.sha256(
                {
                    "source": SOURCE,
                    "alias": alias,
                    "fingerprint": [row.pinned_profile, row.pinned_digest],
                    "description": row.description,
                    "connection": self._identity,
                    **({"vouch": row.standing_vouch} if row.standing_vouch else {}),
                }
            ),
        }

    def finish(self) -> None:
        store_events(self.events, self.actor)
        keep_catalog(self.server, self.actor)
        end_calls(self._ended, self.actor)

    def _sentences(self, row: ComposedTool) -> list[str]:
        address = endpoint.address_of(self.server)
        runs = translatable(f"Runs on the upstream server {self.server.name}, at {address}, as “{row.name}”.")
        found = [basis_of(row), runs]
        if names := self._secret_names:
            # They are added to the arguments (SR-7).
            found.append(translatable(f"The connection carries secrets that are added here: {', '.join(names)}."))
        if alone := unchecked((row.pinned or row.seen).get("inputSchema") or {}):
            found.append(alone)
        return [storable(each) for each in (*found, *row.risk_reasons[:MOST_REASONS])]

    def _refresh(self, row: ComposedTool, tool: Tool) -> bool:
        """Bring its row in the gate up to date; return whether that makes it another tool than was approved."""
        wanted = self.columns(row, tool.name)
        differing = {name: value for name, value in wanted.items() if _differs(getattr(tool, name), value)}
        for name, value in differing.items():
            setattr(tool, name, value)
        if differing:
            tools.change(tool.pk, differing, self.actor)
        return "definition_hash" in differing


def follow_all(server: UpstreamServer, actor: Actor, *, changed: str = "") -> None:
    rows = list(server.tools.select_related("tool"))
    update = Update(server, actor)
    for row in rows:
        update.follow(row, changed=changed)
    store(rows, ["state", "reason", *RISK_COLUMNS])
    update.finish()


def store(rows: Iterable[ComposedTool], columns: Iterable[str]) -> None:
    """Write these columns for all rows at once that get the same; `bulk_update` would take many times as long."""
    names = list(columns)
    alike: dict[Any, list[ComposedTool]] = {}
    for row in rows:
        # Records differ anyway, and are long.
        key = row.pk if "seen" in names else canonical.dumps([getattr(row, name) for name in names])
        alike.setdefault(key, []).append(row)
    for same in alike.values():
        values = {name: getattr(same[0], name) for name in names}
        for start in range(0, len(same), AT_A_TIME):
            some = [row.pk for row in same[start : start + AT_A_TIME]]
            ComposedTool.objects.filter(pk__in=some).update(**values)


def is_gated(row: ComposedTool) -> bool:
    """Return whether every call needs approval, as at first."""
    return row.tool is None or row.tool.hitl_mode == HitlMode.REQUIRED


def keep_catalog(server: UpstreamServer, actor: Actor) -> None:
    """Offer what is exposed while the server is there, and nothing else of it."""
    mine = Tool.objects.filter(source=SOURCE, composed__server=server)
    if not (server.enabled and server.present):
        tools.offer(mine, actor, published=False)
        return
    tools.offer(mine.filter(composed__state=ToolState.EXPOSED), actor, published=True)
    tools.offer(mine.exclude(composed__state=ToolState.EXPOSED), actor, published=False)


def end_calls(reasons: Mapping[UUID, str], actor: Actor) -> None:
    if not reasons:
        return
    # Tools may be thousands, and those with open calls are few.
    open_calls = ToolCall.objects.filter(status__in=NOT_STARTED, source=SOURCE, tool__isnull=False)
    for tool_id in reasons.keys() & set(open_calls.values_list("tool_id", flat=True)):
        stopping.withdraw_tool(tool_id, actor=actor, why=reasons[tool_id])


def _differs(one: object, other: object) -> bool:
    """Return whether they differ: for Python, 1 and True and 1.0 are equal."""
    return one != other or (isinstance(one, dict | list) and canonical.dumps(one) != canonical.dumps(other))
