"""The Tool Studio's pages."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from hitlchat.accounts.people import person
from hitlchat.accounts.roles import may_author
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.card import card
from hitlchat.gate.models import HitlMode, Tool, ToolCall
from hitlchat.gate.prompt import render as render_prompt
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tools_studio import argument_form, authoring, inspection
from tools_studio.authoring import SOURCE, AuthoringError
from tools_studio.forms import NEW_TOOL, ToolForm, declared, initial

TEST_SECONDS = 45.0

View = Callable[..., HttpResponse]


def author_only(view: View) -> View:
    @login_required
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not may_author(person(request)):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return guarded


@author_only
@require_GET
def studio(request: HttpRequest) -> HttpResponse:
    return render(request, "studio/empty.html", _side(request))


@author_only
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    form = ToolForm(request.POST or None, initial={"code": NEW_TOOL})
    if request.method == "POST" and form.is_valid():
        try:
            tool = authoring.create(form.draft(), person(request).pk)
        except AuthoringError as error:
            form.show(error.problems)
        else:
            return _saved(tool)
    return render(request, "studio/tool.html", _page(request, form, None), status=422 if form.errors else 200)


@author_only
@require_http_methods(["GET", "POST"])
def tool(request: HttpRequest, name: str) -> HttpResponse:
    found = _tool(name)
    form = ToolForm(request.POST or None, tool=found, initial=initial(found))
    if request.method == "POST" and form.is_valid():
        try:
            changed = authoring.change(found, form.draft(), _actor(request))
        except AuthoringError as error:
            form.show(error.problems)
        else:
            return _saved(changed)
    page = _page(request, form, found) | {"is_saved": request.method == "GET" and "saved" in request.GET}
    return render(request, "studio/tool.html", page, status=422 if form.errors else 200)


def _saved(found: Tool) -> HttpResponse:
    return redirect(reverse("tool", args=[found.name], query={"saved": 1}))


@author_only
@require_POST
def inspect(request: HttpRequest) -> HttpResponse:
    """What follows from the editor's contents, while they are being typed."""
    code = request.POST.get("code", "").replace("\r\n", "\n")
    found = inspection.inspect(request.POST.get("name", ""), code, declared(request.POST))
    return render(request, "studio/_inspection.html", {"inspection": found})


@author_only
@require_POST
def publish(request: HttpRequest, name: str) -> HttpResponse:
    found = _tool(name)
    if request.POST.get("published") == "no":
        authoring.unpublish(found, _actor(request))
        return redirect("tool", name)
    try:
        authoring.publish(found)
    except AuthoringError as error:
        form = ToolForm(initial=initial(found), tool=found)
        page = _page(request, form, found) | {"not_published": error.problems}
        return render(request, "studio/tool.html", page, status=422)
    return redirect("tool", name)


@author_only
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, name: str) -> HttpResponse:
    found = _tool(name)
    if request.method == "POST":
        authoring.delete(found, _actor(request))
        return redirect("studio")
    return render(request, "studio/delete.html", {"tool": found, **_side(request)})


@author_only
@require_POST
def test(request: HttpRequest, name: str) -> HttpResponse:
    """Run the saved tool once, through the gate like everyone else; a gated one is asked about right here."""
    found, user = _tool(name), person(request)
    try:
        arguments = argument_form.arguments(found.input_schema, request.POST)
    except argument_form.BadInput as error:
        return render(request, "studio/_result.html", {"problem": str(error)})
    caller = Caller("studio", user.pk, user.get_username())
    call = async_to_sync(_run)(CallRequest(found.name, arguments, caller))
    if call.status == Status.WAITING:
        return render(request, "studio/_result.html", {"card": card(call.approval), "call": call})
    return render(request, "studio/_result.html", {"call": call})


async def _run(request: CallRequest) -> ToolCall:
    call = await submit(request)
    return await settled(call.pk, TEST_SECONDS) if call.status != Status.WAITING else call


def _actor(request: HttpRequest) -> Actor:
    return Actor(person(request).pk, "session")


def _tool(name: str) -> Tool:
    return get_object_or_404(Tool.objects.select_related("script"), name=name, source=SOURCE)


def _side(request: HttpRequest) -> dict[str, Any]:
    """The list beside every page of the Studio, narrowed by what was searched for."""
    words, mode = request.GET.get("q", "").strip(), request.GET.get("mode", "")
    tools = Tool.objects.filter(source=SOURCE)
    total = tools.count()
    if words:
        tools = tools.filter(name__icontains=words) | tools.filter(script__code__icontains=words)
    if mode in HitlMode.values:
        tools = tools.filter(hitl_mode=mode)
    return {
        "section": "studio", "tools": tools.distinct(), "total": total, "q": words, "mode": mode,
        "modes": HitlMode.choices,
    }  # fmt: skip


def _page(request: HttpRequest, form: ToolForm, found: Tool | None) -> dict[str, Any]:
    context: dict[str, Any] = {"form": form, "tool": found, **_side(request)}
    values = form.data if form.is_bound else form.initial
    code = str(values.get("code", "")).replace("\r\n", "\n")
    context["inspection"] = inspection.inspect(str(values.get("name", "")), code, declared(values))
    if found is not None:
        context["arguments"] = argument_form.fields(found.input_schema, found.example)
        context["prompt_example"] = render_prompt(
            found.prompt_template or "", found.name, found.example or {}
        ) if found.prompt_template and found.example else ""  # fmt: skip
    return context
