"""All upstream servers on one page, and what of it changes while one looks."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from hitlchat.upstreams.access import administrator_only
from hitlchat.upstreams.models import ComposedTool, ServerState, ToolState, UpstreamServer
from hitlchat.upstreams.pages import standing

# Seconds between two looks of a page, while something is about to happen and while nothing is.
SOON, AT_LEISURE = 2, 5
MOST_SEARCHED = 200
HAS_WITHHELD = "has-withheld"


@dataclass(frozen=True)
class Filters:
    """What of the list is wanted; `state` is "" for all, and may be HAS_WITHHELD."""

    q: str = ""
    state: str = ""

    @classmethod
    def of(cls, request: HttpRequest) -> "Filters":
        state = request.GET.get("state", "")
        q = request.GET.get("q", "").strip().replace("\x00", "")[:MOST_SEARCHED]
        return cls(q, state if state in {*ServerState.values, HAS_WITHHELD} else "")

    @property
    def any(self) -> bool:
        return bool(self.q or self.state)

    @property
    def condition(self) -> Q:
        named = Q(name__icontains=self.q) | Q(url__icontains=self.q) | Q(command__icontains=self.q)
        return (named if self.q else Q()) & self._state

    @property
    def _state(self) -> Q:
        if self.state == HAS_WITHHELD:
            return Q(pk__in=ComposedTool.objects.filter(state=ToolState.WITHHELD).values("server"))
        return Q(state=self.state) if self.state else Q()


@administrator_only
@require_GET
def servers(request: HttpRequest) -> HttpResponse:
    return render(request, "servers/list.html", context(request))


def context(request: HttpRequest) -> dict[str, Any]:
    """Of `servers/list.html`, and of the pages that stand over it."""
    told = {
        "section": "servers",
        "states": [*ServerState.choices, (HAS_WITHHELD, "Has withheld tools")],
        "told": standing.take(request),
    }
    return _found(request) | told


@administrator_only
@require_GET
def status(request: HttpRequest) -> HttpResponse:
    """The rows anew, or nothing if none has changed since the page has them."""
    found = _found(request)
    if found["mark"] == request.GET.get("mark"):
        return HttpResponse(status=204)
    return render(request, "servers/_rows.html", found)


def _found(request: HttpRequest) -> dict[str, Any]:
    filters = Filters.of(request)
    lines = standing.standings(UpstreamServer.objects.filter(filters.condition))
    return {
        "filters": filters,
        "lines": lines,
        "total": UpstreamServer.objects.count() if filters.any else len(lines),
        "mark": standing.mark(lines),
        "every": SOON if any(line.is_moving for line in lines) else AT_LEISURE,
    }
