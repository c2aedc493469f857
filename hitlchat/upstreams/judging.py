"""Judging all that a server lists. Pure: no row is read or written here."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.upstreams.client import Listing, UpstreamTool
from hitlchat.upstreams.risk import limits
from hitlchat.upstreams.risk.limits import left_to_the_server
from hitlchat.upstreams.risk.offered import Connection, Offered, Pinned, Unusable, pin
from hitlchat.upstreams.risk.scan import Finding, Known, scan, trips
from hitlchat.upstreams.risk.server import Assessment, ServerFacts, assess_server
from hitlchat.upstreams.risk.tool import Composed, assess_tool, compose, says_it_writes

# What a column of warnings holds of one tool.
MOST_WARNINGS = 20
MOST_NAMED = 5
# Checking schemas takes most of the time, and the same tools are listed again and again.
MOST_REMEMBERED = 20_000
_problems_of: dict[str, tuple[str, ...]] = {}


@dataclass(frozen=True)
class Judged:
    """One tool of a list: its fingerprint, why it cannot be offered, what looks suspicious, and how risky it is."""

    name: str
    pinned: Pinned
    problems: tuple[str, ...]
    findings: tuple[Finding, ...]
    own: Assessment
    writes: bool

    @property
    def poisoned(self) -> bool:
        return trips(self.findings)


@dataclass(frozen=True)
class Judgement:
    """A whole list. `note`: what of it was left out, in words."""

    tools: dict[str, Judged]
    note: str

    @property
    def writes(self) -> bool:
        return any(judged.writes for judged in self.tools.values())


def judge(listing: Listing, connection: Connection, facts: ServerFacts, known: Known) -> Judgement:
    """Takes up to a millisecond for each tool. ValueError: the connection's URL cannot be understood."""
    tools: dict[str, Judged] = {}
    odd: list[str] = []
    for tool in listing.tools:
        judged = _judged(tool, connection, facts, known)
        if judged is None:
            odd.append(tool.name)
        else:
            tools[tool.name] = judged
    return Judgement(tools, _note(listing, odd))


def offered_of(tool: UpstreamTool) -> Offered:
    """Unusable: a member of its definition has the wrong type."""
    return Offered.from_json(tool.definition)


def reassess(record: dict[str, Any], facts: ServerFacts) -> Assessment:
    """The tool's own risk once more, from its record in the ledger."""
    return assess_tool(Offered.from_json(record), facts)


def composed(own: Assessment, facts: ServerFacts, *, gated: bool, poisoned: bool) -> Composed:
    return compose(assess_server(facts), own, gated=gated, poisoned=poisoned)


def findings_of(warnings: Iterable[dict[str, Any]]) -> tuple[Finding, ...]:
    """Return the findings of a JSON column."""
    return tuple(Finding(**each) for each in warnings)


def as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings for a JSON column: those that block first, so that none of them is cut off."""
    ordered = sorted(findings, key=lambda finding: finding.severity != "block")
    return [{key: storable(text) for key, text in asdict(each).items()} for each in ordered[:MOST_WARNINGS]]


def _judged(tool: UpstreamTool, connection: Connection, facts: ServerFacts, known: Known) -> Judged | None:
    """None: it cannot even be kept as a row."""
    if len(tool.name) > limits.LONGEST_NAME or storable(tool.name) != tool.name or not tool.name.strip():
        return None
    try:
        offered = offered_of(tool)
        pinned = pin(offered, connection)
    except (Unusable, canonical.NotJson):
        return None
    problems = _problems(offered, pinned.digest)
    if not problems:
        _prepare(offered)
    return Judged(
        name=tool.name,
        pinned=pinned,
        problems=problems,
        findings=scan(offered, known),
        own=assess_tool(offered, facts),
        writes=says_it_writes(offered),
    )


def _problems(offered: Offered, digest: str) -> tuple[str, ...]:
    if (known := _problems_of.get(digest)) is not None:
        return known
    if len(_problems_of) >= MOST_REMEMBERED:
        _problems_of.clear()
    found = _problems_of[digest] = tuple(f"{each.where}: {each.sentence}" for each in limits.problems(offered))
    return found


def _prepare(offered: Offered) -> None:
    """Compile its patterns here, in a thread that holds no lock, and not in the transaction that exposes it."""
    for schema in (offered.input_schema, offered.output_schema):
        if schema is not None:
            left_to_the_server(schema)


def _note(listing: Listing, odd: list[str]) -> str:
    said = [listing.cut] if listing.cut else []
    if listing.repeated:
        said.append(f"names that come twice, of which only the first is used: {_named(listing.repeated)}")
    if odd:
        said.append(f"tools whose name or definition cannot be kept: {_named(odd)}")
    return "; ".join(said)


def _named(names: Iterable[str]) -> str:
    given = list(names)
    shown = ", ".join(ascii(name[:40])[1:-1] for name in given[:MOST_NAMED])
    return f"{shown} and {len(given) - MOST_NAMED:,} more" if len(given) > MOST_NAMED else shown
