"""A tool's versions: the list, how any two differ, and going back to one."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from hitlchat.gate.actor import actor_of
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import Tool
from tools_studio import authoring, spec, versions
from tools_studio.models import Script, ScriptVersion
from tools_studio.pages import page
from tools_studio.pages.page import author_only, authored, side
from tools_studio.spec import AuthoringError, Unreadable

PAGE = 50


@author_only.reads
def listed(request: HttpRequest, name: str) -> HttpResponse:
    return _list(request, authored(name))


def _list(request: HttpRequest, tool: Tool, status: int = 200, **more: Any) -> HttpResponse:
    rows = _of(tool)
    older_than = request.GET.get("before", "")
    if older_than.isdecimal():
        rows = rows.filter(number__lt=int(older_than[:9]))
    # One more than is shown: what the last one changed is seen against the one before it.
    saves = list(versions.saves(rows[: PAGE + 1]))
    context = {
        "saves": saves[:PAGE],
        "older": saves[PAGE - 1].version.number if len(saves) > PAGE else None,
        "restored": request.GET.get("restored", ""),
        "anew": "anew" in request.GET,
        **_around(request, tool),
        **more,
    }
    return render(request, "studio/versions.html", context, status=status)


@author_only.reads
def compared(request: HttpRequest, name: str, before: int, after: int) -> HttpResponse:
    tool = authored(name)
    old, new = (get_object_or_404(_of(tool), number=number) for number in (before, after))
    context: dict[str, Any] = {"old": old, "new": new, "numbers": _of(tool).values_list("number", flat=True)[:500]}
    try:
        context["difference"] = versions.compare(old.draft, new.draft)
        context["weaker"] = authoring.weaker(old, tool)
    except Unreadable as error:
        context["unreadable"] = str(error)
    return render(request, "studio/difference.html", context | _around(request, tool))


@author_only.posts
def restore(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Save this version's content as a new one; `confirm_lowering` confirms that it asks less than now."""
    tool = authored(name)
    version = get_object_or_404(_of(tool), number=number)
    try:
        confirmed = request.POST.get("confirm_lowering") == "on"
        saved: Script = authoring.restore(version, actor_of(request), confirmed=confirmed).script
    except NotConfirmed as error:
        return _list(request, tool, status=422, confirm=version, weaker=error.weaker)
    except Unreadable as error:
        return _list(request, tool, status=422, not_restored=version, problems=[str(error)])
    except AuthoringError as error:
        problems = [f"{spec.WORDS.get(field, field)}: {text}" for field, text in error.errors.items()]
        return _list(request, tool, status=422, not_restored=version, problems=problems)
    script: Script = tool.script
    query = {"restored": number} | ({"anew": 1} if saved.version != script.version else {})
    return redirect(reverse("tool-versions", args=[name], query=query))


@author_only.reads
def choose(request: HttpRequest, name: str) -> HttpResponse:
    """Redirect from the form with two selections to the address of their difference."""
    numbers = [request.GET.get(key, "") for key in ("before", "after")]
    if not all(number.isdecimal() and len(number) < 9 for number in numbers):
        return redirect("tool-versions", name)
    before, after = sorted(map(int, numbers))
    return redirect("tool-difference", name, before, after)


def _around(request: HttpRequest, tool: Tool) -> dict[str, Any]:
    script: Script = tool.script
    return {"current": script.version, "stage": page.stage_of(tool), "tab": "versions",
            **page.waiting(request, tool), **side(request, tool)}  # fmt: skip


def _of(tool: Tool) -> QuerySet[ScriptVersion]:
    return ScriptVersion.objects.filter(script_id=tool.pk).select_related("author")
