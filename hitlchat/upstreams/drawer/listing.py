"""The servers of the drawer with their tools, filtered and in pieces: one of them may have thousands."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, Q, QuerySet, TextField
from django.db.models.functions import Cast

from hitlchat.gate.models import HitlMode
from hitlchat.upstreams import judging, naming, reaching
from hitlchat.upstreams.drawer.lines import Line, lines_of
from hitlchat.upstreams.drawer.plan import stamp
from hitlchat.upstreams.drawer.summary import SILENT, above
from hitlchat.upstreams.judge import scan
from hitlchat.upstreams.judge.grade import Assessment
from hitlchat.upstreams.judge.rubric import assess_server
from hitlchat.upstreams.models import ComposedTool, ToolState, UpstreamServer

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
    """What somebody filters by; an unknown one narrows nothing."""

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
        """How many can be chosen at all."""
        return self.wanted + self.free

    @property
    def left_out(self) -> int:
        """How many cannot be."""
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
    """What selecting all would select, for the page's own record of changes; what has suspicious texts is left for
    somebody to look at one by one, and only counted."""
    tools = wanted.of_all(ComposedTool.objects.all() if server is None else server.tools.all())
    free = FREE & Q(risk_inherent__lte=ceiling)
    rows = tools.filter(free | Q(exposed=True)).select_related("tool", "server").defer("seen", "pinned")
    found = [row for row in rows if row.exposed or not scan.blocks(judging.findings_of(row.warnings))]
    aliases = naming.proposals(found)
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
