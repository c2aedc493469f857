"""The list of tools beside every page of the Studio: searched, narrowed and grouped, in a fixed number of queries."""

from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.accounts.access import person
from hitlchat.accounts.roles import may_administer
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.tools import listed
from tools_studio import cases
from tools_studio.models import Category, Script
from tools_studio.spec import SOURCE

STATES = (
    ("published", gettext_noop("Published")), ("tested", gettext_noop("Tested")), ("draft", gettext_noop("Draft")),
    ("shipped", gettext_noop("Ships with hitlchat")), ("revoked", gettext_noop("Revoked")),
)  # fmt: skip
# What tools of other sources are listed under, and the page each of them has.
OTHER_GROUPS = {
    "project": gettext_noop("This server's own project"),
    "upstream": gettext_noop("Upstream servers"),
    "agent": gettext_noop("Agents"),
}
OTHER_PAGES = {"project": "project-tool", "upstream": "servers:alias", "agent": "agents:one"}
FOR_ADMINISTRATORS = {"upstream"}
# What no line of the list needs; a page of sixty tools would carry their whole code.
UNUSED = ("input_schema", "output_schema", "description", "facts", "example", "condition", "prompt_template")


@dataclass(frozen=True)
class Line:
    """One tool in the list. `url` is empty where no page of it exists."""

    tool: Tool
    script: Script | None
    url: str

    @property
    def group(self) -> str:
        return self.script.category if self.script else OTHER_GROUPS.get(self.tool.source, self.tool.source)

    @property
    def state(self) -> str:
        if self.script and self.script.revoked:
            return "Revoked"
        if self.tool.published:
            return "Published"
        return "Tested" if getattr(self.tool, "tested", False) else "Draft"


@dataclass(frozen=True)
class Group:
    name: str
    lines: list[Line]
    # The tool that is looked at is never in a closed group.
    current: bool


@dataclass(frozen=True)
class Select:
    """One filter to choose; `any` are its words when it narrows nothing."""

    name: str
    label: str
    any: str
    value: str
    options: list[tuple[str, str]]


@dataclass(frozen=True)
class Filters:
    """Filters of the list; an empty one narrows nothing, all others have to fit."""

    q: str = ""
    category: str = ""
    tag: str = ""
    mode: str = ""
    state: str = ""
    risk: str = ""

    @property
    def chosen(self) -> int:
        """Return how many are set, beside the search."""
        return sum(bool(value) for value in (self.category, self.tag, self.mode, self.state, self.risk))

    @property
    def any(self) -> bool:
        return bool(self.q or self.chosen)

    @property
    def query(self) -> str:
        """Return the filters for links within the list, so that looking at a tool does not widen it again."""
        given = {name: value for name, value in asdict(self).items() if value}
        return f"?{urlencode(given)}" if given else ""


def side(request: HttpRequest, current: Tool | None = None) -> dict[str, Any]:
    """The context of `studio/_list.html`."""
    wanted = Filters(**{name: request.GET.get(name, "").strip() for name in Filters.__dataclass_fields__})
    administers = may_administer(person(request))
    every = cases.with_tested(listed().select_related("script").defer(*UNUSED, "script__code", "script__capabilities"))
    found = [_line(tool, administers) for tool in _narrowed(every, wanted)]
    if wanted.tag:
        found = [line for line in found if line.script and wanted.tag in line.script.tags]
    found.sort(key=lambda line: (line.script is None, line.group, line.tool.name))
    grouped = [(name, list(lines)) for name, lines in groupby(found, key=lambda line: line.group)]
    groups = [Group(name, lines, any(line.tool == current for line in lines)) for name, lines in grouped]
    return {
        "section": "studio", "filters": wanted, "groups": groups, "shown": len(found),
        "total": listed().count(), "selects": _selects(wanted),
        "may_administer": administers,
    }  # fmt: skip


def _narrowed(tools: QuerySet[Tool], wanted: Filters) -> QuerySet[Tool]:
    for word in wanted.q.split():
        places = ("name", "title", "description", "script__code")
        tools = tools.filter(Q(*((f"{place}__icontains", word) for place in places), _connector=Q.OR))
    if wanted.category:
        tools = tools.filter(script__category=wanted.category)
    if wanted.mode:
        tools = tools.filter(hitl_mode=wanted.mode)
    if wanted.risk.isdecimal():
        tools = tools.filter(risk_level=int(wanted.risk[:2]))
    match wanted.state:
        case "published" | "draft":
            tools = tools.filter(published=wanted.state == "published")
        case "tested":
            tools = tools.filter(Q(("tested", True)), published=False, script__revoked="")
        case "shipped" | "revoked":
            tools = tools.filter(script__isnull=False).exclude(**{f"script__{wanted.state}": ""})
    return tools


def _line(tool: Tool, administers: bool) -> Line:
    script = getattr(tool, "script", None)
    page = "tool" if tool.source == SOURCE and script else OTHER_PAGES.get(tool.source, "")
    if tool.source in FOR_ADMINISTRATORS and not administers:
        page = ""
    try:
        url = reverse(page, args=[tool.name]) if page else ""
    except NoReverseMatch:
        url = ""
    return Line(tool, script, url)


def _selects(wanted: Filters) -> list[Select]:
    tags = sorted({tag for tags in Script.objects.values_list("tags", flat=True) for tag in tags})
    risks = [(str(level), f"L{level} {_(label)}") for level, label in enumerate(RISK_LABELS)]
    return [
        Select(
            "category", gettext_noop("Category"), gettext_noop("Any category"), wanted.category, list(Category.choices)
        ),
        Select("tag", gettext_noop("Tag"), gettext_noop("Any tag"), wanted.tag, [(tag, tag) for tag in tags]),
        Select("mode", gettext_noop("HITL mode"), gettext_noop("Any mode"), wanted.mode, list(HitlMode.choices)),
        Select("state", gettext_noop("State"), gettext_noop("Any state"), wanted.state, list(STATES)),
        Select("risk", gettext_noop("Risk"), gettext_noop("Any risk"), wanted.risk, risks),
    ]
