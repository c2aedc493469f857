"""The servers of the drawer with the lines of their tools, filtered and in pieces."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, TextField
from django.db.models.functions import Cast

from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import HitlMode, ToolCall
from hitlchat.gate.withdraw import NOT_STARTED
from hitlchat.upstreams import composing, exposure, judging, reaching
from hitlchat.upstreams.drawer.plan import stamp
from hitlchat.upstreams.models import ComposedTool, Exposure, ServerState, ToolState, UpstreamServer
from hitlchat.upstreams.risk.scan import Finding, blocks, trips
from hitlchat.upstreams.risk.server import Assessment, assess_server
from hitlchat.upstreams.risk.tool import CREDIT, effective

SHORT = 160
MOST_ARGUMENTS = 30


@dataclass(frozen=True)
class Line:
    """`default`: the alias that it gets unless somebody chooses one."""

    row: ComposedTool
    default: str

    @property
    def record(self) -> dict[str, Any]:
        """Return what models are told of it, as far as they are: as it was accepted, and else as it is listed."""
        record: dict[str, Any] = (self.row.pinned if self.row.exposed else None) or self.row.seen
        return record

    @property
    def title(self) -> str:
        return str(self.record.get("title") or (self.record.get("annotations") or {}).get("title") or "")

    @property
    def said(self) -> str:
        """Return its description in one short line; `unsaid` has how many characters there are beyond it."""
        return " ".join(self.description[:SHORT].split())

    @property
    def unsaid(self) -> int:
        return max(0, len(self.description) - SHORT)

    @property
    def description(self) -> str:
        return str(self.record.get("description") or "")

    @property
    def alias(self) -> str:
        """The one that it has or, before it was exposed once, would get."""
        return self.row.tool.name if self.row.tool else self.default

    @property
    def stamp(self) -> str:
        return stamp(self.row)

    @property
    def mode(self) -> str:
        return self.row.tool.hitl_mode if self.row.tool else HitlMode.REQUIRED.value

    @property
    def condition(self) -> str:
        return self.row.tool.condition if self.row.tool else ""

    @property
    def seconds(self) -> str:
        """Return the seconds to answer; empty: as many as the installation gives."""
        return str((self.row.tool and self.row.tool.deadline_seconds) or "")

    @property
    def signed_in_only(self) -> bool:
        return self.row.tool is not None and self.row.tool.signed_in_only

    @property
    def prompt(self) -> str:
        return self.row.tool.prompt_template if self.row.tool else ""

    @property
    def arguments(self) -> list[str]:
        """Return the names of its arguments, as far as the schema has them."""
        properties = (self.record.get("inputSchema") or {}).get("properties")
        return list(properties)[:MOST_ARGUMENTS] if isinstance(properties, dict) else []

    @property
    def asked(self) -> int:
        """Return its risk if every call is asked about."""
        poisoned, floored = trips(self.findings), bool(self.row.risk_floor)
        return effective(self.row.risk_inherent, floored=floored, gated=True, poisoned=poisoned)

    @property
    def reasons(self) -> list[str]:
        """Return reasons for its risk by itself; `credit` is the one for asking.

        Which the page may be about to change.
        """
        return [reason for reason in self.row.risk_reasons if reason != CREDIT]

    @property
    def credit(self) -> str:
        return CREDIT

    @property
    def findings(self) -> tuple[Finding, ...]:
        return judging.findings_of(self.row.warnings)

    @property
    def blocking(self) -> list[Finding]:
        """Return what has to be read before it is exposed."""
        return [] if self.row.exposed else [found for found in self.findings if found.severity == "block"]

    @property
    def is_new(self) -> bool:
        return self.row.state == ToolState.NEW

    @property
    def changed(self) -> bool:
        """Somebody has to look at the difference before anything else."""
        return self.row.held and self.row.listed

    @property
    def obstacle(self) -> str:
        """Return why nobody can expose it, whatever its risk; the ceiling is the page's to compare with."""
        if self.row.exposed:
            return ""
        if self.row.state in {ToolState.GONE, ToolState.UNFIT}:
            return f"Cannot be exposed. {self.row.reason}"
        return "Cannot be exposed before its change is accepted." if self.row.held else ""

    @property
    def trouble(self) -> str:
        """Return why somebody's wish to have it exposed is not met.

        A change and the ceiling are told apart from this.
        """
        if self.row.exposed and self.row.state in {ToolState.GONE, ToolState.UNFIT}:
            return f"Not in the catalog. {self.row.reason}"
        return ""


def lines_of(rows: Iterable[ComposedTool]) -> list[Line]:
    """Return the lines of tools, whose servers are loaded."""
    found = list(rows)
    defaults = composing.aliases([(row, "") for row in found]).given
    return [Line(row, defaults[row.pk]) for row in found]


MOST_CHIPS = 60
SILENT = (ServerState.DOWN, ServerState.SIGN_IN, ServerState.UNUSABLE)
_EXPOSED = Q(state=ToolState.EXPOSED)
_CHANGED = Q(held=True) | ~Q(seen_digest=F("pinned_digest")) | ~Q(seen_profile=F("pinned_profile"))


@dataclass(frozen=True)
class Level:
    """One choice of the ceiling, and what it would keep out. `calls`: those it would withdraw."""

    number: int
    above: int
    above_exposed: int
    calls: int

    @property
    def label(self) -> str:
        return f"L{self.number} {RISK_LABELS[self.number]}"


@dataclass(frozen=True)
class Summary:
    offered: int
    exposed: int
    modes: dict[str, int]
    changed: int
    above: int
    silent: int
    levels: tuple[Level, ...]
    exposure: Exposure

    @property
    def asks(self) -> int:
        return self.modes.get(HitlMode.REQUIRED, 0)

    @property
    def policies(self) -> int:
        return self.modes.get(HitlMode.CONDITIONAL, 0)

    @property
    def never(self) -> int:
        return self.modes.get(HitlMode.DISABLED, 0)


@dataclass(frozen=True)
class Chip:
    """An exposed tool. `there`: it is in the catalog, since its server answers."""

    tool: str
    alias: str
    mode: str
    there: bool


def above(ceiling: int) -> Q:
    """Ticked, and kept out by this ceiling alone."""
    return Q(state=ToolState.WITHHELD, risk_inherent__gt=ceiling) & ~_CHANGED


def summary() -> Summary:
    standing = exposure.standing()
    tools = ComposedTool.objects.exclude(state=ToolState.GONE)
    counts = tools.aggregate(
        offered=Count("pk"),
        exposed=Count("pk", filter=_EXPOSED),
        changed=Count("pk", filter=Q(state=ToolState.WITHHELD) & _CHANGED),
        above=Count("pk", filter=above(standing.ceiling)),
    )
    modes = tools.filter(_EXPOSED).order_by().values_list("tool__hitl_mode").annotate(many=Count("pk"))
    silent = UpstreamServer.objects.filter(enabled=True, state__in=SILENT).count()
    return Summary(modes=dict(modes), silent=silent, levels=_levels(), exposure=standing, **counts)


def chips(most: int | None = MOST_CHIPS) -> list[Chip]:
    """Return chips of all that is exposed, by alias; at most so many."""
    found = ComposedTool.objects.filter(_EXPOSED).order_by("tool__name")
    columns = ("pk", "tool__name", "tool__hitl_mode", "tool__published")
    return [Chip(str(pk), *rest) for pk, *rest in found.values_list(*columns)[:most]]


def _levels() -> tuple[Level, ...]:
    """Return the levels of what could be exposed otherwise."""
    fit = ComposedTool.objects.exclude(state__in=[ToolState.GONE, ToolState.UNFIT])
    counted = (
        fit.order_by().values("risk_inherent").annotate(many=Count("pk"), wanted=Count("pk", filter=Q(exposed=True)))
    )
    found = {each["risk_inherent"]: (each["many"], each["wanted"]) for each in counted}
    open_calls = ToolCall.objects.filter(status__in=NOT_STARTED, tool__composed__state=ToolState.EXPOSED)
    risks = open_calls.order_by().values_list("tool__composed__risk_inherent").annotate(many=Count("pk"))
    waiting = dict(risks.values_list("tool__composed__risk_inherent", "many"))
    return tuple(
        Level(
            number,
            above=sum(many for level, (many, _) in found.items() if level > number),
            above_exposed=sum(wanted for level, (_, wanted) in found.items() if level > number),
            calls=sum(many for level, many in waiting.items() if level > number),
        )
        for number in range(1, 6)
    )


PIECE = 100
# So many tools of all servers together are shown at once where somebody filters.
MOST_FOUND = 200
LONGEST_WORDS = 200
# Could be exposed, whatever the ceiling: it is listed, it fits, and no change of it waits for anyone.
FREE = Q(state__in=[ToolState.NEW, ToolState.HIDDEN], held=False)
SHOWN: dict[str, tuple[str, Q]] = {
    "": ("All tools", Q()),
    "exposed": ("Exposed", Q(exposed=True)),
    "free": ("Not exposed", Q(exposed=False)),
    "new": ("New", Q(state=ToolState.NEW)),
    "withheld": ("Withheld or changed", Q(state=ToolState.WITHHELD) | Q(held=True, listed=True)),
    "warned": ("With warnings", ~Q(warnings=[])),
    "lenient": ("Not asking every time", Q(tool__isnull=False) & ~Q(tool__hitl_mode=HitlMode.REQUIRED)),
}


@dataclass(frozen=True)
class Wanted:
    """The filters; an unknown value narrows nothing."""

    words: str = ""
    show: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Wanted":
        show = query.get("show", "")
        words = query.get("find", "").replace("\x00", "").strip()[:LONGEST_WORDS]
        return cls(words, show if show in SHOWN else "")

    @property
    def any(self) -> bool:
        return bool(self.words or self.show)

    @property
    def query(self) -> str:
        return urlencode({"find": self.words, "show": self.show})

    def of_all(self, tools: QuerySet[ComposedTool]) -> QuerySet[ComposedTool]:
        tools = tools.filter(SHOWN[self.show][1])
        if self.words:
            # As the record stands in its column: with everything but ASCII escaped.
            written = json.dumps(self.words)[1:-1]
            tools = tools.annotate(definition=Cast("seen", TextField())).filter(
                Q(name__icontains=self.words) | Q(tool__name__icontains=self.words) | Q(definition__icontains=written)
            )
        return tools


@dataclass(frozen=True)
class Piece:
    """Some lines of one server, from `start` on, of `many`."""

    server: UpstreamServer
    lines: list[Line]
    start: int
    many: int

    @property
    def next(self) -> int:
        return self.start + len(self.lines)

    @property
    def left(self) -> int:
        return max(0, self.many - self.next)

    @property
    def more(self) -> int:
        return min(PIECE, self.left)


@dataclass(frozen=True)
class Section:
    """A server with its tools, of which `piece` are shown; `free` could be exposed under the present ceiling."""

    server: UpstreamServer
    offered: int
    exposed: int
    wanted: int
    above: int
    free: int
    found: int
    risk: Assessment
    piece: Piece | None = field(default=None)

    @property
    def most(self) -> int:
        """Return how many can be chosen at all."""
        return self.wanted + self.free

    @property
    def left_out(self) -> int:
        """Return how many cannot be."""
        return max(0, self.offered - self.most)

    @property
    def silent(self) -> bool:
        return self.server.enabled and self.server.state in SILENT


def sections(wanted: Wanted, opened: Mapping[str, int], ceiling: int) -> list[Section]:
    """All servers, or those with something that fits. `opened`: how many tools to show at once, by name of server."""
    counts = _counts(wanted, ceiling)
    found = []
    left = MOST_FOUND
    for server in UpstreamServer.objects.all():
        counted = counts.get(server.pk, dict.fromkeys((*_COUNTED, "above", "free", "found"), 0))
        if wanted.any and not counted["found"]:
            continue
        most = opened.get(server.name) or (PIECE if wanted.any and left > 0 else 0)
        piece = piece_of(server, wanted, 0, most) if most else None
        left -= len(piece.lines) if piece else 0
        facts = reaching.facts_of(server, writes=server.writes)
        found.append(Section(server, risk=assess_server(facts), piece=piece, **counted))
    return found


def piece_of(server: UpstreamServer, wanted: Wanted, start: int, most: int) -> Piece:
    tools = wanted.of_all(server.tools.all())
    rows = tools.select_related("tool").order_by("name")[start : start + most]
    many = tools.count()
    for row in (loaded := list(rows)):
        row.server = server
    return Piece(server, lines_of(loaded), start, many)


def choices(wanted: Wanted, server: UpstreamServer | None, ceiling: int) -> dict[str, Any]:
    """Return what selecting all would select, for the page's own record of changes.

    What has suspicious texts is left for somebody to look at one by one, and only counted.
    """
    tools = wanted.of_all(ComposedTool.objects.all() if server is None else server.tools.all())
    free = FREE & Q(risk_inherent__lte=ceiling)
    rows = tools.filter(free | Q(exposed=True)).select_related("tool", "server").defer("seen", "pinned")
    found = [row for row in rows if row.exposed or not blocks(judging.findings_of(row.warnings))]
    aliases = composing.proposals(found)
    return {"tools": [_choice(row, aliases[row.pk]) for row in found], "left": len(rows) - len(found)}


_COUNTED = {
    "offered": ~Q(state=ToolState.GONE),
    "exposed": Q(state=ToolState.EXPOSED),
    "wanted": Q(exposed=True),
}


def _counts(wanted: Wanted, ceiling: int) -> dict[UUID, dict[str, int]]:
    tools = ComposedTool.objects.order_by()
    filters = {**_COUNTED, "above": above(ceiling), "free": FREE & Q(exposed=False, risk_inherent__lte=ceiling)}
    # Under names of their own: a condition on the column `exposed` would be taken for one on the count.
    numbers = {f"many_{name}": Count("pk", filter=condition) for name, condition in filters.items()}
    rows = tools.values("server").annotate(**numbers).values_list("server", *numbers)
    found = wanted.of_all(tools).values_list("server").annotate(many=Count("pk"))
    fits = dict(found.values_list("server", "many"))
    return {row[0]: {**dict(zip(filters, row[1:], strict=True)), "found": fits.get(row[0], 0)} for row in rows}


def _choice(row: ComposedTool, alias: str) -> dict[str, Any]:
    return {
        "tool": str(row.pk),
        "stamp": stamp(row),
        "server": row.server.name,
        "name": alias,
        "exposed": row.exposed,
        "mode": row.tool.hitl_mode if row.tool else HitlMode.REQUIRED,
    }
