"""Tools as a file: an export of those that are chosen, and an import that first shows what it would do."""

import json
from typing import Any, cast, get_args

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.gate.actor import actor_of
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import Tool
from tools_studio import exchange, importing
from tools_studio.exchange import BadFile, TooMuch
from tools_studio.importing import Conflict, Outdated, Plan
from tools_studio.pages.page import author_only, side
from tools_studio.spec import SOURCE

CONFLICTS = (
    ("leave", gettext_noop("Skip"), gettext_noop("The existing tool stays as it is.")),
    (
        "replace",
        gettext_noop("Replace"),
        gettext_noop("As a new version, which never asks less often than the existing tool and becomes a draft."),
    ),
    ("rename", gettext_noop("Add beside it"), gettext_noop("With a number after the name, such as NAME_2.")),
)


@author_only.reads
def export_page(request: HttpRequest) -> HttpResponse:
    """Download the named tools, or `all`, as a file; without either, show the page to choose them."""
    names = request.GET.getlist("name")
    tools = Tool.objects.filter(source=SOURCE).select_related("script")
    if not names and "all" not in request.GET:
        return _choice(request, 422 if "chosen" in request.GET else 200)
    chosen = tools if "all" in request.GET else tools.filter(name__in=names)
    if missing := sorted(set(names) - {each.name for each in chosen}):
        raise Http404(f"there is no authored tool {missing[0]!r}")
    try:
        text = exchange.text(chosen)
    except TooMuch as error:
        return _choice(request, 422, str(error))
    response = HttpResponse(text, content_type="application/json")
    stem, day = names[0] if len(names) == 1 else "hitlchat", timezone.localdate().isoformat()
    response["Content-Disposition"] = f'attachment; filename="{stem}-tools-{day}.json"'
    return response


def _choice(request: HttpRequest, status: int, problem: str = "") -> HttpResponse:
    problem = problem or (gettext_noop("Choose at least one tool.") if status != 200 else "")
    listed = Tool.objects.filter(source=SOURCE).select_related("script").defer("input_schema", "output_schema")
    context = {"exportable": listed, "problem": problem, **side(request)}
    return render(request, "studio/export.html", context, status=status)


@author_only.form
def import_page(request: HttpRequest) -> HttpResponse:
    """Show the form, then the plan, and with the plan's digest carry it out."""
    if request.method != "POST":
        return _form(request)
    on_conflict = _conflict(request)
    file = request.FILES.get("file")
    content: bytes | str = request.POST.get("text", "").strip() if file is None else file.read()
    if not content:
        return _form(request, 422, problem=gettext_noop("Choose a file or paste its content."))
    entries: list[exchange.Entry] = []
    try:
        entries = exchange.read(content)
        if shown := request.POST.get("plan", ""):
            confirmed = request.POST.get("confirm_lowering") == "on"
            done = importing.carry_out(entries, on_conflict, actor_of(request), shown=shown, confirmed=confirmed)
            return render(request, "studio/imported.html", {"plan": done, **side(request)})
        made = importing.plan(entries, on_conflict)
    except BadFile as error:
        return _form(request, 422, bad=error, on_conflict=on_conflict)
    except Outdated as error:
        return _plan(request, error.plan, content, note=str(error))
    except NotConfirmed as error:
        return _plan(request, importing.plan(entries, on_conflict), content, weaker=error)
    return _plan(request, made, content)


def _conflict(request: HttpRequest) -> Conflict:
    given = request.POST.get("on_conflict", "")
    return cast("Conflict", given) if given in get_args(Conflict) else "leave"


def _plan(
    request: HttpRequest, plan: Plan, content: bytes | str, *, note: str = "", weaker: NotConfirmed | None = None
) -> HttpResponse:
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content.removeprefix("\ufeff")
    # On one line: a form's field would change how lines end, and so make it longer.
    compact = json.dumps(canonical.loads(text), ensure_ascii=False, separators=(",", ":"))
    context = {
        "weaker": weaker, "plan": plan, "note": note, "text": compact, "on_conflict": _conflict(request),
        "conflicts": CONFLICTS, **side(request),
    }  # fmt: skip
    return render(request, "studio/import_plan.html", context, status=409 if note or weaker else 200)


def _form(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    context = {
        "conflicts": CONFLICTS, "on_conflict": "leave", "most_tools": exchange.MOST_TOOLS,
        "most_mib": exchange.MOST_BYTES / 2**20, "most_bytes": exchange.MOST_BYTES, **side(request),
    }  # fmt: skip
    return render(request, "studio/import.html", context | more, status=status)
