"""The pages on which administrators set up tool sets."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext_noop

from hitlchat.agent import tool_sets
from hitlchat.agent.models import ToolSet
from hitlchat.agent.tool_sets import Draft
from hitlchat.chat.drafts import DraftForm, DraftPages
from hitlchat.chat.uses import Pick, picks
from hitlchat.gate.actor import actor_of


class ToolSetForm(DraftForm):
    """A tool set as it is typed, with its tools as they are ticked."""

    flows = tool_sets
    name = forms.CharField(max_length=64, help_text="For example “Order desk”.")
    description = forms.CharField(required=False, max_length=300, help_text="One line, for the list of sets.")

    def __init__(self, row: ToolSet | None, data: Any = None) -> None:
        draft = tool_sets.blank() if row is None else tool_sets.draft_of(row)
        super().__init__(row, data, draft)
        self.tools = draft.tools if data is None else tuple(data.getlist("tools"))

    def problems(self) -> dict[str, str]:
        return tool_sets.problems(self.draft(), self.row)

    def draft(self) -> Draft:
        return Draft(**{name: self.cleaned_data.get(name, "") for name in self.fields}, tools=self.tools)

    @property
    def offered(self) -> list[Pick]:
        return picks(tool_sets.choosable(), self.tools)


class ToolSetPages(DraftPages[ToolSet]):
    namespace = "tool-sets"
    templates = "tool_sets"
    form = ToolSetForm
    words = "Only administrators may see and change tool sets."
    rows = staticmethod(tool_sets.standing)

    @property
    def urls(self) -> list[URLPattern]:
        return [*super().urls, self.posted("begin", self.begin, "begin")]

    def about_all(self) -> dict[str, Any]:
        rows = [(row, len(tool_sets.draft_of(row).tools)) for row in self.rows()]
        return {"rows": rows, "default": tool_sets.default()}

    def begin(self, request: HttpRequest) -> HttpResponse:
        """Have new conversations begin with the set that is sent; without one, with all tools."""
        name = request.POST.get("name", "")
        tool_sets.begin_with(self.named(name).pk if name else None, actor_of(request))
        messages.success(request, gettext_noop("New conversations use it from now on."))
        return redirect("tool-sets:list")


app_name = ToolSetPages.namespace
urlpatterns = ToolSetPages().urls
