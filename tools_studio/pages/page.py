"""The parts of the Studio's pages: the list of tools, in a fixed number of queries, and the page of one tool."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.accounts.access import only, person
from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.gate import prompt
from hitlchat.gate.actor import Actor, actor_of
from hitlchat.gate.card import RISK_LABELS, card
from hitlchat.gate.models import CallerKind, HitlMode, Tool, ToolCall
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.stopping import NOT_STARTED
from hitlchat.gate.tools import listed
from tools_studio import argument_form, cases, inspection, spec, variables
from tools_studio.inspection import Inspection
from tools_studio.language import signature
from tools_studio.models import Category, Expectation, Script
from tools_studio.pages.forms import ToolForm, declared
from tools_studio.spec import SOURCE

author_only = only(may_author)
administrator_only = only(may_administer)
MOST_LINKS = 5
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
class Filters:
    """The filters of the list; tools match all that are not empty."""

    q: str = ""
    category: str = ""
    tag: str = ""
    mode: str = ""
    state: str = ""
    risk: str = ""

    @property
    def chosen(self) -> int:
        return sum(bool(value) for value in (self.category, self.tag, self.mode, self.state, self.risk))

    @property
    def any(self) -> bool:
        return bool(self.q or self.chosen)

    @property
    def query(self) -> str:
        """Return the filters for links in the list, so that it stays filtered on a tool's page."""
        given = {name: value for name, value in asdict(self).items() if value}
        return f"?{urlencode(given)}" if given else ""


def authored(name: str) -> Tool:
    return get_object_or_404(Tool.objects.select_related("script"), name=name, source=SOURCE)


@dataclass(frozen=True)
class Stage:
    """`why_not` says what keeps the tool from being published; empty when it can be, or is."""

    state: str
    why_not: str
    passed: ToolCall | None
    missing: dict[str, str]


def stage_of(tool: Tool) -> Stage:
    """Return how far the tool, with its script loaded, is from the catalog."""
    script: Script = tool.script
    missing = dict(variables.resolve(spec.stored_variables(script).values()).missing)
    passed = cases.passed(tool)
    why_not = "" if passed else _("Run a test first: none has passed since the last edit.")
    if missing:
        why_not = " ".join([*missing.values(), _("The tool stays a draft until then.")])
    state = "published" if tool.published else "draft" if why_not else "ready"
    if script.revoked:
        state, why_not = "revoked", _("A revoked tool cannot run.")
    return Stage(state, why_not, passed, missing)


def side(request: HttpRequest, current: Tool | None = None) -> dict[str, Any]:
    wanted = Filters(**{name: request.GET.get(name, "").strip() for name in Filters.__dataclass_fields__})
    administers = may_administer(person(request))
    every = cases.with_tested(listed().select_related("script").defer(*UNUSED, "script__code", "script__capabilities"))
    found = [_line(tool, administers) for tool in _narrowed(every, wanted)]
    if wanted.tag:
        found = [line for line in found if line.script and wanted.tag in line.script.tags]
    found.sort(key=lambda line: (line.script is None, line.group, line.tool.name))
    grouped = [(name, list(lines)) for name, lines in groupby(found, key=lambda line: line.group)]
    # The tool that is looked at is never in a closed group.
    groups = [
        {"name": name, "lines": lines, "current": any(line.tool == current for line in lines)}
        for name, lines in grouped
    ]
    return {
        "section": "studio", "filters": wanted, "groups": groups, "shown": len(found),
        "total": listed().count(), "selects": _selects(wanted),
        "may_administer": administers,
    }  # fmt: skip


def open_calls(tool: Tool) -> tuple[int, int]:
    """Return how many calls of the tool wait for an answer, and how many were cleared and have not started yet."""
    statuses = list(tool.calls.filter(status__in=NOT_STARTED).values_list("status", flat=True))
    waiting = statuses.count(Status.WAITING)
    return waiting, len(statuses) - waiting


def of(request: HttpRequest, form: ToolForm, result: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the context of `studio/tool.html`. `result`: the outcome of a test; by default the open one."""
    tool = form.tool
    context = {
        "form": form,
        "tool": tool,
        "inspection": inspected(form.data if form.is_bound else form.initial),
        "may_administer": may_administer(person(request)),
        **side(request, tool),
    }
    if tool is None:
        return context
    if result is None:
        # The person's newest test of the tool that is not settled, so that a reload does not lose it.
        tests = ToolCall.objects.filter(tool=tool, caller=person(request), caller_kind=CallerKind.STUDIO)
        newest = tests.exclude(status__in=SETTLED).select_related("approval").order_by("-created_at").first()
        result = console(newest, actor_of(request)) if newest else {}
    filled = (
        prompt.render(tool.prompt_template, tool.name, tool.example) if tool.prompt_template and tool.example else ""
    )
    saved = {
        "stage": stage_of(tool),
        "arguments": argument_form.fields(tool.input_schema, tool.example),
        "has_preview": signature.preview_of(tool.script.code) is not None,
        "prompt_example": filled,
        **waiting(request, tool),
    }
    return context | saved | result


def inspected(values: Mapping[str, Any]) -> Inspection:
    """Inspect the tool in a form's values, as they were typed or are initially."""
    code = str(values.get("code", "")).replace("\r\n", "\n")
    description = str(values.get("description", "")).strip()
    return inspection.inspect(str(values.get("name", "")), code, declared(values), description)


def console(call: ToolCall, viewer: Actor) -> dict[str, Any]:
    """Return the context of a test: its card while it waits for an answer, then its outcome."""
    if call.status == Status.WAITING:
        return {"call": call, "card": card(call.approval, viewer)}
    return {"call": call, "expectations": Expectation.choices, "failed": call.status == Status.FAILED}


def waiting(request: HttpRequest, tool: Tool) -> dict[str, Any]:
    """Return how many calls saving or deleting `tool` would withdraw, and the person's own of those that wait."""
    unanswered, cleared = open_calls(tool)
    own = ToolCall.objects.filter(tool=tool, caller=person(request), status=Status.WAITING)
    newest = own.select_related("approval").order_by("-created_at")[:MOST_LINKS] if unanswered else []
    return {"tool": tool, "asked": unanswered, "cleared": cleared, "own": newest}


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


def _selects(wanted: Filters) -> list[dict[str, Any]]:
    """Return the selects of the filters; `any` is the label of the choice that filters nothing."""
    tags = sorted({tag for tags in Script.objects.values_list("tags", flat=True) for tag in tags})
    risks = [(str(level), f"L{level} {_(label)}") for level, label in enumerate(RISK_LABELS)]
    every = (
        ("category", gettext_noop("Category"), gettext_noop("Any category"), Category.choices),
        ("tag", gettext_noop("Tag"), gettext_noop("Any tag"), [(tag, tag) for tag in tags]),
        ("mode", gettext_noop("Approval"), gettext_noop("Any mode"), HitlMode.choices),
        ("state", gettext_noop("State"), gettext_noop("Any state"), STATES),
        ("risk", gettext_noop("Risk"), gettext_noop("Any risk"), risks),
    )
    return [
        {"name": name, "label": label, "any": words, "value": getattr(wanted, name), "options": options}
        for name, label, words, options in every
    ]
