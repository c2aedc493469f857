"""The pages on which administrators set up tool sets."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hitlchat.accounts.access import administrators_only
from hitlchat.agent import tool_sets
from hitlchat.agent.models import ToolSet
from hitlchat.agent.tool_sets import BadToolSet, Draft, InUse
from hitlchat.chat.uses import Pick, picks
from hitlchat.gate.actor import actor_of

administrator_only = administrators_only("Only administrators may see and change tool sets.")
LIST = "tool-sets:list"


class ToolSetForm(forms.Form):
    """A tool set as it is typed, with its tools as they are ticked."""

    name = forms.CharField(max_length=64, help_text="How people find it, such as “Order desk”.")
    description = forms.CharField(required=False, max_length=300, help_text="One line, for the list of sets.")

    def __init__(self, row: ToolSet | None, data: Any = None) -> None:
        draft = tool_sets.blank() if row is None else tool_sets.draft_of(row)
        super().__init__(data, initial={"name": draft.name, "description": draft.description})
        self.row = row
        self.tools = draft.tools if data is None else tuple(data.getlist("tools"))

    def clean(self) -> dict[str, Any]:
        for name, said in tool_sets.problems(self.draft(), self.row).items():
            if name not in self.errors:
                self.add_error(name if name in self.fields else None, said)
        return self.cleaned_data

    def draft(self) -> Draft:
        given = {name: self.cleaned_data.get(name, "") for name in self.fields}
        return Draft(**given, tools=self.tools)

    @property
    def offered(self) -> list[Pick]:
        return picks(tool_sets.choosable(), self.tools)


@administrator_only
@require_safe
def listed(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _page(request: HttpRequest, problem: str = "") -> HttpResponse:
    context = {
        "section": "servers",
        "problem": problem,
        "rows": [(row, len(tool_sets.draft_of(row).tools)) for row in tool_sets.standing()],
        "default": tool_sets.default(),
    }
    return render(request, "tool_sets/list.html", context, status=422 if problem else 200)


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    return _edit(request, None)


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def one(request: HttpRequest, name: str) -> HttpResponse:
    return _edit(request, _named(name))


def _edit(request: HttpRequest, row: ToolSet | None) -> HttpResponse:
    form = ToolSetForm(row, request.POST if request.method == "POST" else None)
    if form.is_valid() and (saved := _save(request, form)) is not None:
        messages.success(request, _("{name} is saved.").format(name=saved.name))
        return redirect(LIST)
    context = {"section": "servers", "row": row, "form": form}
    return render(request, "tool_sets/edit.html", context, status=422 if form.errors else 200)


def _save(request: HttpRequest, form: ToolSetForm) -> ToolSet | None:
    try:
        if form.row is None:
            return tool_sets.create(form.draft(), actor_of(request))
        return tool_sets.change(form.row.pk, form.draft(), actor_of(request))
    except BadToolSet as error:
        for name, said in error.errors.items():
            form.add_error(name if name in form.fields else None, said)
    return None


@administrator_only
@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """Have new conversations begin with the set that is sent; without one, with all tools."""
    name = request.POST.get("name", "")
    tool_sets.begin_with(_named(name).pk if name else None, actor_of(request))
    messages.success(request, gettext_noop("New conversations begin with it from now on."))
    return redirect(LIST)


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, name: str) -> HttpResponse:
    """Say what removing means; then do it."""
    row = _named(name)
    if request.method != "POST":
        return render(request, "tool_sets/remove.html", {"section": "servers", "row": row})
    try:
        tool_sets.remove(row.pk, actor_of(request))
    except InUse as error:
        return _page(request, problem=str(error))
    messages.success(request, _("{name} was removed.").format(name=row.name))
    return redirect(LIST)


def _named(name: str) -> ToolSet:
    return get_object_or_404(tool_sets.standing(), name=name)


app_name = "tool-sets"
urlpatterns = [
    path("", listed, name="list"),
    path("new", new, name="new"),
    path("begin", begin, name="begin"),
    path("at/<str:name>", one, name="one"),
    path("at/<str:name>/remove", remove, name="remove"),
]
