"""One upstream tool and the history of all: what was accepted, what it has become, and what to do about that."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_POST, require_safe

from hitlchat.base.sentences import translated
from hitlchat.gate import spec
from hitlchat.gate.actor import actor_of
from hitlchat.gate.models import HitlMode
from hitlchat.upstreams import exposure
from hitlchat.upstreams.changes import Change, Refused
from hitlchat.upstreams.models import ComposedTool, ToolEvent, ToolState
from hitlchat.upstreams.pages import comparison, summary
from hitlchat.upstreams.pages.comparison import acceptance_of, fields, has_changed, is_intact
from hitlchat.upstreams.pages.summary import administrator_only
from hitlchat.upstreams.risk.limits import unchecked
from hitlchat.upstreams.risk.scan import findings_of

AT_A_TIME = 25
MOST_SEARCHED = 128
PINNING = ("tool.exposed", "tool.accepted", "tool.pinned_anew")
WORDS = {
    "tool.exposed": gettext_noop("Exposed"),
    "tool.hidden": gettext_noop("No longer exposed"),
    "tool.returned": gettext_noop("Back in the catalog"),
    "tool.changed": gettext_noop("Withheld: its server changed its definition"),
    "tool.withheld": gettext_noop("Withheld"),
    "tool.unfit": gettext_noop("Withheld: it cannot be offered as it is"),
    "tool.gone": gettext_noop("Gone from its server's list"),
    "tool.accepted": gettext_noop("Accepted as it is now"),
    "tool.configured": gettext_noop("Settings changed"),
    "tool.pinned_anew": gettext_noop("Fingerprint renewed by newer rules: the same definition"),
    "tool.deleted": gettext_noop("Its server was removed"),
}
SETTINGS = {
    "alias": gettext_noop("Alias"),
    **{name: spec.WORDS[name] for name in (*spec.SETTINGS, "description")},
}
_MEANS = {
    "session": gettext_noop("in the browser"),
    "token": gettext_noop("with a token"),
    "console": gettext_noop("at the console"),
    "elicitation": gettext_noop("over MCP"),
}
_LINKS = {
    "tool.changed": gettext_noop("What changed"),
    "tool.accepted": gettext_noop("What changed"),
    "tool.exposed": gettext_noop("Definition"),
}
_ITSELF = gettext_noop("hitlchat, by itself")
LOOKS = {
    ToolState.NEW: ("", "clock"),
    ToolState.HIDDEN: ("", "ban"),
    ToolState.EXPOSED: ("succeeded", "check"),
    ToolState.WITHHELD: ("unknown", "alert"),
    ToolState.GONE: ("failed", "x"),
    ToolState.UNFIT: ("refused", "alert"),
}


@dataclass(frozen=True)
class Setting:
    """One setting that was changed; empty texts where there was none."""

    words: str
    before: str
    after: str


@dataclass(frozen=True)
class Line:
    """One event, in words."""

    event: ToolEvent

    @property
    def words(self) -> str:
        return WORDS.get(self.event.name, self.event.name)

    @property
    def link(self) -> str:
        """Return what the event's own page shows that a line of a list has no room for; empty if there is nothing."""
        return _LINKS.get(self.event.name, "")

    @property
    def who(self) -> str:
        return self.event.actor.get_username() if self.event.actor else _(_ITSELF)

    @property
    def means(self) -> str:
        if self.event.actor is None:
            return ""
        return _MEANS.get(self.event.means, gettext_noop("by a program in their name"))

    @property
    def reason(self) -> str:
        """Return the reason of the event, where its words do not give it."""
        return "" if self.event.name in {"tool.changed", "tool.gone"} else str(self.event.data.get("reason", ""))

    @property
    def settings(self) -> list[Setting]:
        if self.event.name not in {"tool.configured", "tool.exposed"}:
            return []
        # Whoever exposes a tool settles the rest of it in the same moment.
        data = self.event.data if self.event.name == "tool.configured" else self.event.data.get("settings") or {}
        found = [
            Setting(
                _(words), *(_in_words(name, str((data.get(key) or {}).get(name, ""))) for key in ("before", "after"))
            )
            for name, words in SETTINGS.items()
        ]
        return [each for each in found if each.before != each.after]


def _in_words(name: str, value: str) -> str:
    if name == "hitl_mode" and value in HitlMode.values:
        return _(HitlMode(value).label)
    if name == "deadline_seconds" and value == "None":
        return ""
    if name == "signed_in_only":
        return _("Yes") if value == "True" else _("No")
    return value


@dataclass(frozen=True)
class Page:
    """`older`: the id before which to go on, None at the end."""

    lines: tuple[Line, ...]
    older: int | None


def page_of(events: QuerySet[ToolEvent], query: QueryDict) -> Page:
    """Return the page that ends before the event that `before` in the query names."""
    before = query.get("before", "")
    if before.isascii() and before.isdigit():
        events = events.filter(pk__lt=int(before[:18]))
    related = events.select_related("actor", "tool__server").defer("record", "tool__seen", "tool__pinned")
    rows = list(related.order_by("-pk")[: AT_A_TIME + 1])
    shown = rows[:AT_A_TIME]
    return Page(tuple(map(Line, shown)), shown[-1].pk if len(rows) > AT_A_TIME else None)


def accepted_before(event: ToolEvent) -> ToolEvent | None:
    """The last event before this one at which somebody, or a newer fingerprint, fixed the tool's record."""
    own = Q(tool=event.tool_id) if event.tool_id else Q(server_name=event.server_name, tool_name=event.tool_name)
    found = ToolEvent.objects.filter(own, name__in=PINNING, record__isnull=False, pk__lt=event.pk)
    return found.order_by("-pk").first()


def of(request: HttpRequest, row: ComposedTool, problems: list[str]) -> dict[str, Any]:
    """The context of `servers/ledger/tool.html`; `problems`: why it was not done what was asked."""
    changed = has_changed(row)
    accepted = row.pinned if row.pinned_digest else None
    found = acceptance_of(row) if changed else None
    look, icon = LOOKS[ToolState(row.state)]
    return {
        "section": "servers", "row": row, "server": row.server, "tool": row.tool, "look": look, "look_icon": icon,
        "problems": problems, "acceptance": found,
        "reasons": list(dict.fromkeys(map(summary.risk_reason, row.risk_reasons))),
        "accepted": accepted is not None, "intact": accepted is None or is_intact(accepted, row.pinned_digest),
        "fields": fields(accepted or row.seen),
        "unchecked": "" if row.problems else unchecked((accepted or row.seen).get("inputSchema") or {}),
        "listed_fields": fields(row.seen) if changed else (),
        "warnings": [each for each in findings_of(row.warnings) if not found or each not in found.new_warnings],
        "history": page_of(ToolEvent.objects.filter(tool=row), request.GET),
    }  # fmt: skip


@administrator_only
@require_safe
def history(request: HttpRequest) -> HttpResponse:
    """All events; `server` and `tool` narrow them by a part of the name that it had then."""
    wanted = {
        name: request.GET.get(name, "").strip().replace("\x00", "")[:MOST_SEARCHED] for name in ("server", "tool")
    }
    found = ToolEvent.objects.filter(**{f"{name}_name__icontains": text for name, text in wanted.items() if text})
    context = {"section": "servers", "history": page_of(found, request.GET), "wanted": wanted}
    return render(request, "servers/ledger/history.html", context | {"any": any(wanted.values())})


@administrator_only
@require_safe
def event(request: HttpRequest, event_id: int) -> HttpResponse:
    """Return one event, and how its record differs from the one that had been accepted before."""
    found = get_object_or_404(ToolEvent.objects.select_related("actor", "tool__server"), pk=event_id)
    context: dict[str, Any] = {"section": "servers", "event": found, "line": Line(found)}
    if found.record is not None:
        before = accepted_before(found)
        context |= {"before": before, "fields": fields(found.record)}
        if before is not None:
            context["comparison"] = comparison.compare(before.record, found.record)
    return render(request, "servers/ledger/event.html", context)


@administrator_only
@require_safe
def tool(request: HttpRequest, name: str, tool_id: UUID) -> HttpResponse:
    return _shown(request, _row(name, tool_id))


@administrator_only
@require_safe
def by_alias(request: HttpRequest, alias: str) -> HttpResponse:  # noqa: ARG001
    """Show a tool to whoever knows no more of it than what it is called here."""
    row = get_object_or_404(ComposedTool.objects.select_related("server"), tool__name=alias)
    return redirect("servers:tool", row.server.name, row.pk)


@administrator_only
@require_POST
def accept(request: HttpRequest, name: str, tool_id: UUID) -> HttpResponse:
    """Accept a tool; 409 if it is not as it was shown, or something has to be read first."""
    row = _row(name, tool_id)
    try:
        accepted = exposure.accept(
            row.pk,
            request.POST.get("digest", ""),
            actor_of(request),
            keep_mode=request.POST.get("keep_mode") == "on",
            warnings_read=request.POST.get("warnings_read") == "on",
        )
    except Refused as error:
        return _shown(request, _row(name, tool_id), [each.sentence for each in error.problems[row.pk]])
    messages.success(request, _accepted(accepted))
    return redirect("servers:tool", name, tool_id)


@administrator_only
@require_POST
def stop(request: HttpRequest, name: str, tool_id: UUID) -> HttpResponse:
    row = _row(name, tool_id)
    try:
        exposure.apply([Change(row.pk, exposed=False)], actor_of(request))
    except Refused as error:
        return _shown(request, _row(name, tool_id), [each.sentence for each in error.problems[row.pk]])
    messages.success(request, _("It is not exposed any more. Its settings are kept, for the day when it is again."))
    return redirect("servers:tool", name, tool_id)


def _row(name: str, tool_id: UUID) -> ComposedTool:
    rows = ComposedTool.objects.select_related("server", "tool", "accepted_by")
    return get_object_or_404(rows, pk=tool_id, server__name=name)


def _shown(request: HttpRequest, row: ComposedTool, problems: list[str] | None = None) -> HttpResponse:
    context = of(request, row, problems or [])
    return render(request, "servers/ledger/tool.html", context, status=409 if problems else 200)


def _accepted(row: ComposedTool) -> str:
    if row.state != ToolState.EXPOSED or row.tool is None:
        return " ".join(filter(None, [_("The new definition is accepted."), translated(row.reason)]))
    sentence = _("The new definition is accepted, and the tool is exposed with it. Approval: {asks}.")
    return sentence.format(asks=_(row.tool.get_hitl_mode_display()).lower())
