"""Acceptance: what accepting a changed tool would mean, its record beside the accepted one, with nothing hidden."""

from dataclasses import dataclass
from typing import Any

from hitlchat.base import canonical
from hitlchat.base.diff import Side, sides
from hitlchat.base.visible import Seen, see
from hitlchat.gate.models import HitlMode, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams import catalog, endpoint
from hitlchat.upstreams.models import ComposedTool, ToolEvent
from hitlchat.upstreams.risk.fingerprint import FIELDS, Difference, Offered, difference
from hitlchat.upstreams.risk.rubric import Composed, assess_server, assess_tool, compose, says_it_writes
from hitlchat.upstreams.risk.scan import Finding, blocks, findings_of, scan, trips

LONGEST = 70_000
MOST_PLACES = 200


@dataclass(frozen=True)
class Field:
    """One member. `cut`: how many characters of it are not shown, which only happens to what cannot be offered."""

    words: str
    text: Seen
    is_code: bool
    cut: int


def fields(record: dict[str, Any]) -> tuple[Field, ...]:
    found = []
    for name in (name for name in FIELDS if name in record):
        value = record[name]
        text = value if isinstance(value, str) else canonical.pretty(value, indent=2)
        found.append(Field(FIELDS[name], see(text[:LONGEST]), not isinstance(value, str), max(0, len(text) - LONGEST)))
    return tuple(found)


def is_intact(record: dict[str, Any], digest: str) -> bool:
    """Return whether what is stored still has the fingerprint that was accepted."""
    return canonical.sha256(record) == digest


@dataclass(frozen=True)
class Place:
    """One place in which two records differ."""

    found: Difference
    before: Side | None
    after: Side | None

    @property
    def is_inside(self) -> bool:
        """Return whether it is a part of a schema or of the connection, whose place says more than the field's name."""
        return self.found.where.count("/") > 1


@dataclass(frozen=True)
class Comparison:
    """The first places in which two records differ, and how many more there are."""

    places: tuple[Place, ...]
    more: int


@dataclass(frozen=True)
class Acceptance:
    """`withdrawn`: calls that came to nothing when it changed. `loses_mode`: accepted, it asks every time again.
    `must_read`: nobody may accept it without saying that they read the warnings.
    """

    comparison: Comparison
    before: Composed
    after: Composed
    new_warnings: tuple[Finding, ...]
    withdrawn: int
    loses_mode: bool
    must_read: bool

    @property
    def riskier(self) -> bool:
        return self.after.inherent > self.before.inherent


def compare(before: dict[str, object], after: dict[str, object]) -> Comparison:
    found = difference(before, after)
    places = [Place(each, *sides(each.before, each.after)) for each in found[:MOST_PLACES]]
    return Comparison(tuple(places), max(0, len(found) - MOST_PLACES))


def has_changed(row: ComposedTool) -> bool:
    """Return whether somebody has to look before it can be offered again."""
    return bool(row.pinned_digest) and (row.held or row.seen_digest != row.pinned_digest)


def acceptance_of(row: ComposedTool) -> Acceptance:
    """Return what a tool that `has_changed` becomes; its server and its row in the gate are loaded."""
    facts = endpoint.facts_of(row.server, writes=row.server.writes)
    then = endpoint.facts_of(row.server, writes=_wrote(row))
    old = scan(Offered.from_json(row.pinned), catalog.known_to(row.server))
    new = findings_of(row.warnings)
    known = {(each.id, each.where, each.excerpt) for each in old}
    gated = row.tool is None or row.tool.hitl_mode == HitlMode.REQUIRED
    return Acceptance(
        comparison=compare(row.pinned, row.seen),
        before=compose(
            assess_server(then), assess_tool(Offered.from_json(row.pinned), then), gated=gated, poisoned=trips(old)
        ),
        after=compose(
            assess_server(facts), assess_tool(Offered.from_json(row.seen), facts), gated=True, poisoned=trips(new)
        ),
        new_warnings=tuple(each for each in new if (each.id, each.where, each.excerpt) not in known),
        withdrawn=_withdrawn(row),
        loses_mode=not gated,
        must_read=blocks(new),
    )


def _wrote(row: ComposedTool) -> bool:
    """Would any of the server's tools say that it writes, if this one were as it was accepted?"""
    if not row.server.writes or says_it_writes(Offered.from_json(row.pinned)):
        return row.server.writes
    others = ComposedTool.objects.filter(server=row.server, listed=True).exclude(pk=row.pk)
    return any(says_it_writes(Offered.from_json(seen)) for seen in others.values_list("seen", flat=True).iterator())


def _withdrawn(row: ComposedTool) -> int:
    changed = row.tool and ToolEvent.objects.filter(tool=row, name="tool.changed").last()
    if not changed:
        return 0
    return ToolCall.objects.filter(tool=row.tool, status=Status.WITHDRAWN, settled_at__gte=changed.at).count()
