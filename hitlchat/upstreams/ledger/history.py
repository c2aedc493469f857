"""What happened to tools, those that are gone among them."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from hitlchat.upstreams.access import administrator_only
from hitlchat.upstreams.ledger import becoming, words
from hitlchat.upstreams.ledger.becoming import fields
from hitlchat.upstreams.ledger.words import Line
from hitlchat.upstreams.models import ToolEvent

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
    """One event, and how its record differs from the one that had been accepted before."""
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
