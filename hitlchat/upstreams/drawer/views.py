"""The Composed Tools drawer: what of all upstream servers is offered here, and on which terms."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from hitlchat.gate import deciders
from hitlchat.gate.actor import actor_of
from hitlchat.gate.models import DEFAULT_PROMPT
from hitlchat.upstreams import composing, exposure
from hitlchat.upstreams.access import administrator_only, server_named
from hitlchat.upstreams.drawer import listing, plan
from hitlchat.upstreams.drawer.listing import MOST_CHIPS, PIECE, SHOWN, Line, Wanted, chips, lines_of, summary
from hitlchat.upstreams.models import ComposedTool
from hitlchat.upstreams.pages import server as page

# What a page that was opened long ago may have loaded piece by piece.
MOST_AT_ONCE = 1000


@administrator_only
@require_http_methods(["GET", "POST"])
def drawer(request: HttpRequest) -> HttpResponse:
    """Show the drawer over the servers page; alone where that is there already."""
    if request.method == "POST":
        return _apply(request)
    context = _everything(request)
    if _is_on_page(request):
        answer = render(request, "servers/drawer/_drawer.html", context)
        answer.headers["HX-Replace-Url"] = reverse("servers:drawer")
        return answer
    return render(request, "servers/drawer/page.html", page.context(request) | context)


@administrator_only
@require_GET
def filtered(request: HttpRequest) -> HttpResponse:
    """The servers, as far as they have tools that fit the filter."""
    return render(request, "servers/drawer/_servers.html", _servers(request))


@administrator_only
@require_GET
def lines(request: HttpRequest, name: str) -> HttpResponse:
    """Tools of one server: the next of them, or, to see them anew, as many from the first on as are shown."""
    start, most = (_number(request.GET.get(key, "")) for key in ("from", "most"))
    wanted = Wanted.of(request.GET.dict())
    piece = listing.piece_of(server_named(name), wanted, start, min(max(most, PIECE), MOST_AT_ONCE))
    context = {"piece": piece, "filter": wanted, "ceiling": exposure.standing().ceiling}
    return render(request, "servers/drawer/_lines.html", context)


@administrator_only
@require_GET
def line(request: HttpRequest, tool_id: UUID) -> HttpResponse:
    """Return one tool as it is now."""
    found = _line(tool_id)
    return render(request, "servers/drawer/_line.html", {"line": found, "ceiling": exposure.standing().ceiling})


@administrator_only
@require_GET
def details(request: HttpRequest, tool_id: UUID) -> HttpResponse:
    """Return what most people need not see of one tool: all of its texts, its schema, and what is seldom changed."""
    words = {"default_prompt": DEFAULT_PROMPT, "signed_in_only_help": deciders.what_signed_in_only_means()}
    context = {"line": _line(tool_id), **words, "usual_seconds": settings.HITL_TIMEOUT_SECONDS}
    return render(request, "servers/drawer/_details.html", context)


@administrator_only
@require_GET
def choices(request: HttpRequest) -> JsonResponse:
    """All tools that can be selected, of one server or of all, for the page's own record of changes."""
    name = request.GET.get("server", "")
    ceiling = _number(request.GET.get("ceiling", "")) or exposure.standing().ceiling
    found = listing.choices(Wanted.of(request.GET.dict()), server_named(name) if name else None, ceiling)
    return JsonResponse(found)


@administrator_only
@require_POST
def check(request: HttpRequest) -> HttpResponse:
    """Return what would speak against the changes, while they are being made."""
    wanted = plan.read(request.POST.get("plan", ""))
    ceiling = wanted.exposure.ceiling if wanted.exposure else exposure.standing().ceiling
    problems = composing.problems(wanted.listed(), ceiling, actor_of(request))
    about = [wish.tool for wish in wanted.changes]
    return render(request, "servers/drawer/_checked.html", {"about": about, "problems": plan.told(problems)})


def _apply(request: HttpRequest) -> HttpResponse:
    """Always 200, which is what htmx shows; the fragment says what became of it."""
    outcome = plan.carry_out(plan.read(request.POST.get("plan", "")), actor_of(request))
    context: dict[str, Any] = {"outcome": outcome}
    if outcome.applied:
        context |= _totals() | {"is_oob": True}
    return render(request, "servers/drawer/_outcome.html", context)


def _everything(request: HttpRequest) -> dict[str, Any]:
    return {"section": "servers", **_totals(), **_servers(request)}


def _totals() -> dict[str, Any]:
    found = summary()
    return {
        "summary": found, "chips": chips(), "unseen_chips": max(0, found.exposed - MOST_CHIPS),
        "ceiling": found.exposure.ceiling,
    }  # fmt: skip


def _servers(request: HttpRequest) -> dict[str, Any]:
    wanted, ceiling = Wanted.of(request.GET.dict()), exposure.standing().ceiling
    most = min(max(_number(request.GET.get("most", "")), PIECE), MOST_AT_ONCE)
    found = listing.sections(wanted, dict.fromkeys(request.GET.getlist("server"), most), ceiling)
    return {
        "sections": found, "filter": wanted, "ceiling": ceiling, "found": sum(each.found for each in found),
        "shown": [(key, label) for key, (label, _) in SHOWN.items()],
    }  # fmt: skip


def _line(tool_id: UUID) -> Line:
    rows = ComposedTool.objects.select_related("server", "tool")
    return lines_of([get_object_or_404(rows, pk=tool_id)])[0]


def _is_on_page(request: HttpRequest) -> bool:
    """Asked for by a script of the servers page, and not by the browser that shows a page again."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 7 else 0
