"""One upstream tool: what was accepted, what it has become, and what to do about that."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from hitlchat.gate.actor import actor_of
from hitlchat.upstreams import composing
from hitlchat.upstreams.access import administrator_only
from hitlchat.upstreams.changes import Change, Refused
from hitlchat.upstreams.ledger import page
from hitlchat.upstreams.models import ComposedTool, ToolState
from hitlchat.upstreams.pages import standing


@administrator_only
@require_GET
def tool(request: HttpRequest, name: str, tool_id: UUID) -> HttpResponse:
    return _shown(request, _row(name, tool_id))


@administrator_only
@require_GET
def by_alias(request: HttpRequest, alias: str) -> HttpResponse:  # noqa: ARG001
    """For whoever knows no more of a tool than what it is called here."""
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
    context = page.of(request, row, problems or [])
    return render(request, "servers/ledger/tool.html", context, status=409 if problems else 200)


def _told(row: ComposedTool) -> str:
    if row.state != ToolState.EXPOSED or row.tool is None:
        return f"The new definition is accepted. {row.reason}".strip()
    asks = row.tool.get_hitl_mode_display().lower()
    return f"The new definition is accepted, and the tool is exposed with it. Approval: {asks}."
