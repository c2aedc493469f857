"""What accepting a changed tool would mean, held against what was accepted before."""

from dataclasses import dataclass

from hitlchat.gate.models import HitlMode, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams import discovering, judging, reaching
from hitlchat.upstreams.judge.difference import Difference, difference
from hitlchat.upstreams.judge.offered import Offered
from hitlchat.upstreams.judge.rubric import Composed, says_it_writes
from hitlchat.upstreams.judge.scan import Finding, blocks, scan, trips
from hitlchat.upstreams.ledger.sides import Side, sides
from hitlchat.upstreams.models import ComposedTool, ToolEvent

MOST_PLACES = 200


@dataclass(frozen=True)
class Place:
    """One place in which two records differ."""

    found: Difference
    before: Side | None
    after: Side | None

    @property
    def is_inside(self) -> bool:
        """Of a part of a schema or of the connection, its place says more than the field's name."""
        return self.found.where.count("/") > 1


@dataclass(frozen=True)
class Comparison:
    """The first places in which two records differ, and how many more there are."""

    places: tuple[Place, ...]
    more: int


@dataclass(frozen=True)
class Becoming:
    """`withdrawn`: calls that came to nothing when it changed. `loses_mode`: accepted, it asks every time again.
    `must_read`: nobody may accept it without saying that they read the warnings."""

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
    """Whether somebody has to look before it can be offered again."""
    return bool(row.pinned_digest) and (row.held or row.seen_digest != row.pinned_digest)


def becoming(row: ComposedTool) -> Becoming:
    """Of a tool that `has_changed`, with its server and its row in the gate."""
    facts = reaching.facts_of(row.server, writes=row.server.writes)
    then = reaching.facts_of(row.server, writes=_wrote(row))
    old = scan(Offered.from_json(row.pinned), discovering.known_to(row.server))
    new = judging.findings_of(row.warnings)
    known = {(each.id, each.where, each.excerpt) for each in old}
    gated = row.tool is None or row.tool.hitl_mode == HitlMode.REQUIRED
    return Becoming(
        comparison=compare(row.pinned, row.seen),
        before=judging.composed(judging.reassess(row.pinned, then), then, gated=gated, poisoned=trips(old)),
        after=judging.composed(judging.reassess(row.seen, facts), facts, gated=True, poisoned=trips(new)),
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
    changed = ToolEvent.objects.filter(tool=row, name="tool.changed").last()
    if changed is None or row.tool is None:
        return 0
    return ToolCall.objects.filter(tool=row.tool, status=Status.WITHDRAWN, settled_at__gte=changed.at).count()
