"""The servers of the drawer with the lines of their tools, filtered and in pieces."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Case, Count, F, Q, QuerySet, TextField, When
from django.db.models.functions import Cast
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.sentences import translated
from hitlchat.gate import spec
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import HitlMode, Tool, ToolCall
from hitlchat.gate.stopping import NOT_STARTED
from hitlchat.upstreams import exposure
from hitlchat.upstreams.catalog import basis_of
from hitlchat.upstreams.changes import settings_of, stamp
from hitlchat.upstreams.models import AWAY, ComposedTool, Exposure, ToolState, UpstreamServer, Vouch
from hitlchat.upstreams.pages.summary import risk_of, risk_reason
from hitlchat.upstreams.risk.limits import unchecked
from hitlchat.upstreams.risk.rubric import CREDIT, Assessment, effective
from hitlchat.upstreams.risk.scan import Finding, blocks, findings_of, trips

SHORT = 160
MOST_ARGUMENTS = 30
# The fields of a line that are loaded with its details.
DETAILS = ("description", "prompt_template", "deadline_seconds", "vouch", "vouch_note")
MOST_CHIPS = 60
_EXPOSED = Q(state=ToolState.EXPOSED)
_CHANGED = Q(held=True) | ~Q(seen_digest=F("pinned_digest")) | ~Q(seen_profile=F("pinned_profile"))
PIECE = 100
# So many tools of all servers together are shown at once where somebody filters.
MOST_FOUND = 200
# Could be exposed, whatever the ceiling: it is listed, it fits, and no change of it waits for anyone.
FREE = Q(state__in=[ToolState.NEW, ToolState.HIDDEN], held=False)
SHOWN: dict[str, tuple[str, Q]] = {
    "": (gettext_noop("All tools"), Q()),
    "exposed": (gettext_noop("Exposed"), Q(exposed=True)),
    "free": (gettext_noop("Not exposed"), Q(exposed=False)),
    "new": (gettext_noop("New"), Q(state=ToolState.NEW)),
    "withheld": (gettext_noop("Withheld or changed"), Q(state=ToolState.WITHHELD) | Q(held=True, listed=True)),
    "warned": (gettext_noop("With warnings"), ~Q(warnings=[])),
    "lenient": (gettext_noop("Not asking every time"), Q(tool__isnull=False) & ~Q(tool__hitl_mode=HitlMode.REQUIRED)),
}
_COUNTED = {"offered": ~Q(state=ToolState.GONE), "exposed": _EXPOSED, "wanted": Q(exposed=True)}


@dataclass(frozen=True)
class Line:
    """One tool. `default`: the alias that it gets unless somebody chooses one. `typed`: what a form has otherwise than
    the tool, and `problems`: what speaks against that, by field or of the whole. `stamp_seen`: its stamp as it was
    shown; `is_stale`: it has changed since; `is_open`: its details are shown too.
    """

    row: ComposedTool
    default: str
    typed: Mapping[str, Any] = field(default_factory=dict)
    problems: Mapping[str, list[str]] = field(default_factory=dict)
    stamp_seen: str = ""
    is_open: bool = False
    is_stale: bool = False
    # The reason for a lower risk if every call is asked about, which the page may be about to change.
    credit: ClassVar = CREDIT

    @property
    def record(self) -> dict[str, Any]:
        """Return its record: as it was accepted if it is exposed, and else as it is listed."""
        record: dict[str, Any] = (self.row.pinned if self.row.exposed else None) or self.row.seen
        return record

    @property
    def title(self) -> str:
        return str(self.record.get("title") or (self.record.get("annotations") or {}).get("title") or "")

    @property
    def short(self) -> str:
        """Return its description in one short line; `beyond` is the number of characters that are left out."""
        return " ".join(self.description[:SHORT].split())

    @property
    def beyond(self) -> int:
        return max(0, len(self.description) - SHORT)

    @property
    def description(self) -> str:
        return str(self.record.get("description") or "")

    @property
    def stamp(self) -> str:
        return stamp(self.row)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Return its settings by the names of their fields; the alias is the one that it has or would get."""
        # One that was never exposed has the settings of a new tool.
        tool = self.row.tool or Tool()
        return {
            "exposed": self.row.exposed,
            **settings_of(self.row),
            **{name: getattr(tool, name) for name in spec.SETTINGS},
            "alias": tool.name or self.default,
            "deadline_seconds": str(tool.deadline_seconds or ""),
            "warnings_read": False,
        }

    @cached_property
    def now(self) -> dict[str, Any]:
        return self.settings | dict(self.typed)

    @property
    def objections(self) -> list[tuple[str, list[str]]]:
        """Return the problems of each field that has a place for them, if any."""
        fields = ["alias", "condition", *(DETAILS if self.is_open else ())]
        return [(name, self.problems.get(name, [])) for name in fields]

    @property
    def arguments(self) -> list[str]:
        properties = (self.record.get("inputSchema") or {}).get("properties")
        return list(properties)[:MOST_ARGUMENTS] if isinstance(properties, dict) else []

    @property
    def unchecked(self) -> str:
        """Return a sentence about what only its server checks; empty if there is nothing, or it cannot be offered."""
        return "" if self.row.problems else unchecked(self.record.get("inputSchema") or {})

    @property
    def risk_if_gated(self) -> int:
        poisoned, floored = trips(self.findings), bool(self.row.risk_floor)
        return effective(self.row.risk_inherent, floored=floored, gated=True, poisoned=poisoned)

    @property
    def reasons(self) -> list[str]:
        basis = [basis_of(self.row)] if self.row.stated_risk(self.row.seen_digest) is None else []
        return [risk_reason(each) for each in (*basis, *self.row.risk_reasons) if each != CREDIT]

    @property
    def vouches(self) -> list[tuple[str, str]]:
        return [("", _("Unknown: nobody vouches for it")), *((each.value, _(each.label)) for each in Vouch)]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return findings_of(self.row.warnings)

    @property
    def blocking(self) -> list[Finding]:
        """Return what has to be read before it is exposed."""
        return [] if self.row.exposed else [found for found in self.findings if found.severity == "block"]

    @property
    def obstacle(self) -> str:
        """Return why nobody can expose it, whatever its risk; the ceiling is the page's to compare with."""
        if self.row.exposed:
            return ""
        if self.row.state in {ToolState.GONE, ToolState.UNFIT}:
            return _("Cannot be exposed.") + f" {translated(self.row.reason)}"
        return _("Cannot be exposed before its change is accepted.") if self.row.held else ""

    @property
    def trouble(self) -> str:
        """Return why it is ticked and not in the catalog, except for a change or the ceiling."""
        if self.row.exposed and self.row.state in {ToolState.GONE, ToolState.UNFIT}:
            return _("Not in the catalog.") + f" {translated(self.row.reason)}"
        return ""


def lines_of(rows: Iterable[ComposedTool]) -> list[Line]:
    found = list(rows)
    defaults = exposure.aliases([(row, "") for row in found]).given
    return [Line(row, defaults[row.pk]) for row in found]


def above(ceiling: int) -> Q:
    """Return the condition of ticked tools that this ceiling alone keeps out."""
    return Q(state=ToolState.WITHHELD, risk_inherent__gt=ceiling) & ~_CHANGED


def summary() -> dict[str, Any]:
    """Return the numbers of the drawer's head, and what each choice of the ceiling would keep out."""
    current = Exposure.current()
    tools = ComposedTool.objects.exclude(state=ToolState.GONE)
    counts = tools.aggregate(
        offered=Count("pk"),
        exposed=Count("pk", filter=_EXPOSED),
        asks=Count("pk", filter=_EXPOSED & Q(tool__hitl_mode=HitlMode.REQUIRED)),
        policies=Count("pk", filter=_EXPOSED & Q(tool__hitl_mode=HitlMode.CONDITIONAL)),
        never=Count("pk", filter=_EXPOSED & Q(tool__hitl_mode=HitlMode.DISABLED)),
        changed=Count("pk", filter=Q(state=ToolState.WITHHELD) & _CHANGED),
        above=Count("pk", filter=above(current.ceiling)),
    )
    silent = UpstreamServer.objects.filter(enabled=True, state__in=AWAY).count()
    return {**counts, "silent": silent, "levels": _levels(), "exposure": current}


def chips() -> list[Any]:
    """Return the first exposed tools by alias. `there`: it is in the catalog, since its server answers."""
    columns = {"alias": F("tool__name"), "mode": F("tool__hitl_mode"), "there": F("tool__published")}
    return list(ComposedTool.objects.filter(_EXPOSED).order_by("tool__name").values("pk", **columns)[:MOST_CHIPS])


def _levels() -> list[dict[str, Any]]:
    """Return each choice of the ceiling with the tools that it would keep out, and the calls that it would withdraw."""
    fit = ComposedTool.objects.exclude(state__in=[ToolState.GONE, ToolState.UNFIT])
    by_risk = fit.order_by().values_list("risk_inherent")
    counted = list(by_risk.annotate(Count("pk"), wanted=Count("pk", filter=Q(exposed=True))))
    open_calls = ToolCall.objects.filter(status__in=NOT_STARTED, tool__composed__state=ToolState.EXPOSED)
    waiting = list(open_calls.order_by().values_list("tool__composed__risk_inherent").annotate(Count("pk")))
    return [
        {
            "number": number,
            "label": f"L{number} {_(RISK_LABELS[number])}",
            "above": sum(many for level, many, _ in counted if level > number),
            "above_exposed": sum(wanted for level, _, wanted in counted if level > number),
            "calls": sum(many for level, many in waiting if level > number),
        }
        for number in range(1, 6)
    ]


@dataclass(frozen=True)
class Wanted:
    """The filters; an unknown value narrows nothing."""

    words: str = ""
    show: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Wanted":
        show = query.get("show", "")
        words = query.get("find", "").replace("\x00", "").strip()[:200]
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
class Rest:
    """The tools of a server after those that are shown, of which `free` can be selected without a look."""

    many: int
    free: list[UUID]
    exposed: list[UUID]
    warned: int
    stamp: str


@dataclass(frozen=True)
class Unknown:
    """Exposed tools that nobody vouches for, with the digests of their definitions."""

    tools: dict[UUID, str]

    @property
    def stamp(self) -> str:
        return canonical.sha256(sorted([str(pk), digest] for pk, digest in self.tools.items()))


@dataclass(frozen=True)
class Piece:
    """Some lines of one server, from `start` on, and the rest after them; `others`: further lines of a form; `unknown`:
    all that is exposed of it without anybody who vouches for it.
    """

    server: UpstreamServer
    lines: list[Line]
    start: int
    rest: Rest
    others: Sequence[Line]
    unknown: Unknown

    @property
    def next(self) -> int:
        return self.start + len(self.lines)

    @property
    def many(self) -> int:
        return self.next + self.rest.many

    @property
    def more(self) -> int:
        return min(PIECE, self.rest.many)


@dataclass(frozen=True)
class Section:
    """A server with its tools, of which `piece` are shown. `counts`: see `counts_of`."""

    server: UpstreamServer
    risk: Assessment
    counts: Mapping[str, int]
    piece: Piece | None

    @property
    def most(self) -> int:
        """Return the number of tools that can be chosen at all."""
        return self.counts["wanted"] + self.counts["free"]

    @property
    def left_out(self) -> int:
        return max(0, self.counts["offered"] - self.most)

    @property
    def silent(self) -> bool:
        return self.server.enabled and self.server.state in AWAY


def sections(wanted: Wanted, opened: Mapping[str, int], ceiling: int) -> list[Section]:
    """Return all servers, or those with something that fits, and those of `opened`: how many tools of each to show."""
    found = []
    left = MOST_FOUND
    counts = counts_of(wanted, ceiling)
    for server in UpstreamServer.objects.all():
        found_here = server.pk in counts and counts[server.pk]["found"]
        if wanted.any and not found_here and server.name not in opened:
            continue
        most = opened.get(server.name) or (PIECE if wanted.any and left > 0 else 0)
        piece = piece_of(server, wanted, slice(0, most), ceiling) if most else None
        left -= len(piece.lines) if piece else 0
        found.append(section_of(server, counts, piece))
    return found


def section_of(server: UpstreamServer, counts: Mapping[UUID, dict[str, int]], piece: Piece | None) -> Section:
    return Section(server, risk_of(server), counts.get(server.pk, Counter()), piece)


def piece_of(
    server: UpstreamServer, wanted: Wanted, shown: slice, ceiling: int, filled: Mapping[UUID, Line] | None = None
) -> Piece:
    """Return some tools of a server. `filled`: lines as a form has them; those of other pieces are kept besides."""
    others = dict(filled or {})
    rows = wanted.of_all(server.tools.all()).select_related("tool").order_by("name")[shown]
    lines = [others.pop(line.row.pk, line) for line in lines_of(rows)]
    rest = rest_of(server, wanted, shown.start + len(lines), ceiling)
    return Piece(server, lines, shown.start, rest, list(others.values()), unknown_of(server))


def unknown_of(server: UpstreamServer) -> Unknown:
    tools = server.tools.filter(_EXPOSED).filter(Q(vouch="") | ~Q(vouched_digest=F("seen_digest")))
    return Unknown(dict(tools.values_list("pk", "seen_digest")))


def rest_of(server: UpstreamServer, wanted: Wanted, start: int, ceiling: int) -> Rest:
    """Return the rest from `start` on. What has suspicious texts is left for somebody to look at, and only counted."""
    tools = wanted.of_all(server.tools.all()).order_by("name")
    fits = Case(When(FREE & Q(exposed=False, risk_inherent__lte=ceiling), then=True), default=False)
    rows = list(tools.annotate(fits=fits).values_list("pk", "seen_digest", "exposed", "fits", "warnings")[start:])
    suspicious = {pk for pk, _, _, _, warnings in rows if warnings and blocks(findings_of(warnings))}
    return Rest(
        many=len(rows),
        free=[pk for pk, _, _, is_free, _ in rows if is_free and pk not in suspicious],
        exposed=[pk for pk, _, exposed, _, _ in rows if exposed],
        warned=sum(is_free and pk in suspicious for pk, _, _, is_free, _ in rows),
        stamp=canonical.sha256([[str(pk), digest, exposed, free] for pk, digest, exposed, free, _ in rows]),
    )


def counts_of(wanted: Wanted, ceiling: int) -> dict[UUID, dict[str, int]]:
    """Return numbers of tools by server; `free` could be exposed under the present ceiling, `found` fit the filters."""
    tools = ComposedTool.objects.order_by()
    filters = {**_COUNTED, "above": above(ceiling), "free": FREE & Q(exposed=False, risk_inherent__lte=ceiling)}
    # Under names of their own: a condition on the column `exposed` would be taken for one on the count.
    numbers = {f"many_{name}": Count("pk", filter=condition) for name, condition in filters.items()}
    rows = tools.values("server").annotate(**numbers).values_list("server", *numbers)
    fits = dict(wanted.of_all(tools).values_list("server").annotate(Count("pk"))) if wanted.any else {}
    return {row[0]: {**dict(zip(filters, row[1:], strict=True)), "found": fits.get(row[0], 0)} for row in rows}


def number(text: str) -> int:
    """Return a small number as a query has it; 0 for anything else."""
    return int(text) if text.isdecimal() and len(text) < 7 else 0
