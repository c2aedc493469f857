"""The editor: a new tool, a copy, a tool that exists, its publishing, and what follows from what is typed.

New tools begin plain, or with what reaches outside of the sandbox: starters.toml has them.
"""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from hitlchat.accounts.access import person
from hitlchat.accounts.roles import may_administer
from hitlchat.gate.actor import actor_of
from hitlchat.gate.models import Tool
from tools_studio import authoring, spec
from tools_studio.authoring import free_name
from tools_studio.models import ScriptVersion
from tools_studio.pages import page
from tools_studio.pages.forms import ToolForm
from tools_studio.pages.page import author_only, authored, side
from tools_studio.spec import AuthoringError, Draft, draft_of

_TOOLS = tomllib.loads((Path(__file__).parents[1] / "starters.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Starter:
    """A template for a new tool; authors choose by `title` and `sentence`.

    `needs`: what must be set up or changed before its test can pass; `mails`: a mail server too.
    """

    key: str
    title: str
    sentence: str
    needs: str = ""
    mails: bool = False

    @property
    def draft(self) -> Draft:
        return spec.given(_TOOLS[self.key])


STARTERS = (
    Starter(
        "function", "Plain function", ("Text or numbers in, a result out. It has no capabilities, so it need not ask.")
    ),
    Starter(
        "records",
        "Structured data",
        "A dataclass describes each item of a list: names, types and defaults become the schema.",
    ),
    Starter("store", "Tool with a memory", "Keeps a list between calls, in a store shared by all tools of the group."),
    Starter(
        "preview",
        "Asks first, with a preview",
        "Shows the approver what the call would change before anything happens, such as booking an expense.",
    ),
    Starter(
        "api",
        "HTTP API, reading",
        "Fetches from a named host with GET and returns the JSON of the response.",
        needs="Replace api.example.com in the code and under Network.",
    ),
    Starter(
        "secret",
        "API with key",
        "Sends a request with a secret that the server adds, so that neither the code nor the model ever has it.",
        needs="Replace api.example.com in the code and under Network, and set the secret API_KEY under Variables.",
    ),
    Starter(
        "email",
        "E-mail",
        "Sends a message only to recipients that you list.",
        needs="Replace team@example.com in the code and under E-mail.",
        mails=True,
    ),
    Starter("files", "Files", "Reads and writes text files in one folder of the server's data, here a diary."),
)


class Stale(Exception):
    """The tool was saved by someone else since the page was made; `version` is what they saved."""

    def __init__(self, version: ScriptVersion | None) -> None:
        super().__init__("saved by someone else in the meantime")
        self.version = version


@author_only.reads
def studio(request: HttpRequest) -> HttpResponse:
    return render(request, "studio/empty.html", side(request))


@author_only.form
def new(request: HttpRequest) -> HttpResponse:
    starter, draft = _beginning(request)
    form = ToolForm(request, request.POST if request.method == "POST" else None, draft=draft)
    if form.is_valid():
        with form.refusals():
            confirmed = bool(form.cleaned_data["lower_anyway"])
            return _saved(authoring.create(form.draft(), actor_of(request), confirmed=confirmed))
    context = page.of(request, form) | {
        "starters": STARTERS, "starter": starter, "can_mail": bool(settings.EMAIL_HOST),
        "copied": request.GET.get("from", ""),
    }  # fmt: skip
    return render(request, "studio/tool.html", context, status=422 if form.errors or form.weaker else 200)


@author_only.form
def tool(request: HttpRequest, name: str) -> HttpResponse:
    found = authored(name)
    data = request.POST if request.method == "POST" else None
    form = ToolForm(request, data, tool=found, draft=draft_of(found))
    if form.is_valid():
        try:
            with form.refusals():
                changed, withdrawn = _save(request, found, form)
                return _saved(changed, was_published=found.published, withdrawn=withdrawn)
        except Stale as stale:
            return _refused(request, found, form, stale.version)
    context = page.of(request, form)
    if request.method == "GET" and "saved" in request.GET:
        # A save leads to this address, which says what it did.
        count = request.GET.get("withdrawn", "")
        withdrawn = int(count) if count.isdecimal() and len(count) < 7 else 0
        context |= {"is_saved": True, "left_catalog": "left" in request.GET, "withdrawn": withdrawn}
    return render(request, "studio/tool.html", context, status=422 if form.errors or form.weaker else 200)


@author_only.posts
def inspect(request: HttpRequest) -> HttpResponse:
    """Show the inspection of the editor's contents during typing."""
    context: dict[str, Any] = {
        "inspection": page.inspected(request.POST), "may_administer": may_administer(person(request)),
    }  # fmt: skip
    if name := request.GET.get("of", ""):
        context |= page.waiting(request, authored(name))
    return render(request, "studio/_live.html", context)


@author_only.reads
def open_calls(request: HttpRequest, name: str) -> HttpResponse:
    """Show the note about open calls; 204 while the page has their number."""
    context = page.waiting(request, authored(name))
    if request.GET.get("shown") == str(context["asked"] + context["cleared"]):
        return HttpResponse(status=204)
    return render(request, "studio/_waiting.html", context)


@author_only.form
def delete(request: HttpRequest, name: str) -> HttpResponse:
    found = authored(name)
    if request.method == "POST":
        authoring.delete(found, actor_of(request))
        return redirect("studio")
    return render(
        request, "studio/delete.html", {"tool": found, **side(request, found), **page.waiting(request, found)}
    )


@author_only.posts
def publish(request: HttpRequest, name: str) -> HttpResponse:
    found = authored(name)
    if request.POST.get("published") == "no":
        authoring.unpublish(found, actor_of(request))
        return redirect("tool", name)
    try:
        authoring.publish(found, actor_of(request))
    except AuthoringError as error:
        form = ToolForm(request, tool=found, draft=draft_of(found))
        context = page.of(request, form) | {"not_published": error.errors}
        return render(request, "studio/tool.html", context, status=422)
    return redirect("tool", name)


def _names() -> set[str]:
    return {*Tool.objects.values_list("name", flat=True)}


def _beginning(request: HttpRequest) -> tuple[Starter | None, Draft]:
    """Return the start of a new tool: a copy of another one, a template, or the plain function."""
    if name := request.GET.get("from", ""):
        # Everything but the values of secrets.
        draft = draft_of(authored(name))
        title = draft.title and f"{draft.title} (copy)"[:120]
        return None, replace(draft, name=free_name(name, _names(), "_copy", 1), title=title)
    key = request.GET.get("template", "")
    found = next((starter for starter in STARTERS if starter.key == key), None)
    if found is not None:
        return found, replace(found.draft, name=free_name(found.draft.name, _names()))
    if key:
        raise Http404(f"there is no template {key!r}")
    return None, replace(STARTERS[0].draft, name="")


def _save(request: HttpRequest, found: Tool, form: ToolForm) -> tuple[Tool, int]:
    """Save the tool, and return it with the number of withdrawn calls. Raises: Stale, AuthoringError"""
    with transaction.atomic():
        # Locked, so that nobody saves between the comparison and the saving.
        now = Tool.objects.select_for_update(of=("self",)).select_related("script").get(pk=found.pk)
        made_from = form.cleaned_data["made_from"]
        if made_from is not None and made_from != now.script.version:
            raise Stale(ScriptVersion.objects.select_related("author").filter(script=now.script).first())
        before = sum(page.open_calls(now))
        confirmed = bool(form.cleaned_data["lower_anyway"])
        changed = authoring.change(now, form.draft(), actor_of(request), confirmed=confirmed)
        return changed, max(0, before - sum(page.open_calls(changed)))


def _refused(request: HttpRequest, found: Tool, form: ToolForm, newer: ScriptVersion | None) -> HttpResponse:
    """Show the page again with all that was typed; saving once more replaces what somebody else saved."""
    made_from, found = form.cleaned_data["made_from"], authored(found.name)
    data = request.POST.copy()
    data["made_from"] = str(found.script.version)
    again = ToolForm(request, data, tool=found, draft=draft_of(found))
    again.is_valid()
    context = page.of(request, again) | {"newer": newer, "made_from": made_from}
    return render(request, "studio/tool.html", context, status=409)


def _saved(found: Tool, *, was_published: bool = False, withdrawn: int = 0) -> HttpResponse:
    left = {"left": 1} if was_published and not found.published else {}
    query = {"saved": 1} | left | ({"withdrawn": withdrawn} if withdrawn else {})
    return redirect(reverse("tool", args=[found.name], query=query))
