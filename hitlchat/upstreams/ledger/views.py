"""One upstream tool: what was accepted, what it has become, what happened, and what to do about that."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from hitlchat.gate.actor import actor_of
from hitlchat.upstreams import composing
from hitlchat.upstreams.access import administrator_only
from hitlchat.upstreams.changes import Change, Refused
from hitlchat.upstreams.ledger import becoming, words
from hitlchat.upstreams.ledger.becoming import fields
from hitlchat.upstreams.ledger.words import Line
from hitlchat.upstreams.models import ComposedTool, ToolEvent, ToolState
from hitlchat.upstreams.pages import standing

MOST_SEARCHED = 128


@administrator_only
@require_GET
def history(request: HttpRequest) -> HttpResponse:
    """All events; `server` and `tool` narrow them by a part of the name that it had then."""
    wanted = {name: _searched(request, name) for name in ("server", "tool")}
    found = _narrowed(ToolEvent.objects.all(), wanted["server"], wanted["tool"])
    context = {"section": "servers", "history": words.page_of(found, request.GET), "wanted": wanted}
    return render(request, "servers/ledger/history.html", context | {"any": any(wanted.values())})


@administrator_only
@require_GET
def event(request: HttpRequest, event_id: int) -> HttpResponse:
    """Return one event, and how its record differs from the one that had been accepted before."""
    found = get_object_or_404(ToolEvent.objects.select_related("actor", "tool__server"), pk=event_id)
    context: dict[str, Any] = {"section": "servers", "event": found, "line": Line(found)}
    if found.record is not None:
        before = words.accepted_before(found)
        context |= {"before": before, "fields": fields(found.record)}
        if before is not None:
            context["comparison"] = becoming.compare(before.record, found.record)
    return render(request, "servers/ledger/event.html", context)


def _searched(request: HttpRequest, name: str) -> str:
    return request.GET.get(name, "").strip().replace("\x00", "")[:MOST_SEARCHED]


def _narrowed(events: QuerySet[ToolEvent], server: str, tool: str) -> QuerySet[ToolEvent]:
    if server:
        events = events.filter(server_name__icontains=server)
    return events.filter(tool_name__icontains=tool) if tool else events


@administrator_only
@require_GET
def tool(request: HttpRequest, name: str, tool_id: UUID) -> HttpResponse:
    return _shown(request, _row(name, tool_id))


@administrator_only
@require_GET
def by_alias(request: HttpRequest, alias: str) -> HttpResponse:  # noqa: ARG001
    """Show a tool to whoever knows no more of it than what it is called here."""
    row = get_object_or_404(ComposedTool.objects.select_related("server"), tool__name=alias)
    return redirect("servers:tool", row.server.name, row.pk)


@administrator_only
@require_POST
def accept(request: HttpRequest, name: str, tool_id: UUID) -> HttpResponse:
    """409: it is not any more as it was shown, or something has to be read first."""
    row = _row(name, tool_id)
    try:
        accepted = composing.accept(
            row.pk,
            request.POST.get("digest", ""),
            actor_of(request),
            keep_mode=request.POST.get("keep_mode") == "on",
            warnings_read=request.POST.get("warnings_read") == "on",
        )
    except Refused as error:
        return _shown(request, _row(name, tool_id), error.problems[row.pk])
    standing.tell(request, _told(accepted))
    return redirect("servers:tool", name, tool_id)


@administrator_only
@require_POST
def stop(request: HttpRequest, name: str, tool_id: UUID) -> HttpResponse:
    row = _row(name, tool_id)
    try:
        composing.apply([Change(row.pk, exposed=False)], actor_of(request))
    except Refused as error:
        return _shown(request, _row(name, tool_id), error.problems[row.pk])
    standing.tell(request, "It is not exposed any more. Its settings are kept, for the day when it is again.")
    return redirect("servers:tool", name, tool_id)


def _row(name: str, tool_id: UUID) -> ComposedTool:
    rows = ComposedTool.objects.select_related("server", "tool", "accepted_by")
    return get_object_or_404(rows, pk=tool_id, server__name=name)


def _shown(request: HttpRequest, row: ComposedTool, problems: list[str] | None = None) -> HttpResponse:
    context = words.of(request, row, problems or [])
    return render(request, "servers/ledger/tool.html", context, status=409 if problems else 200)


def _told(row: ComposedTool) -> str:
    if row.state != ToolState.EXPOSED or row.tool is None:
        return f"The new definition is accepted. {row.reason}".strip()
    asks = row.tool.get_hitl_mode_display().lower()
    return f"The new definition is accepted, and the tool is exposed with it. Approval: {asks}."
