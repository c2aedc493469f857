"""The project's functions as the Studio shows them: to be read, since everything about them stands in the code."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path

from hitlchat.accounts.access import only
from hitlchat.accounts.roles import may_author
from hitlchat.base import canonical
from hitlchat.gate.models import Tool
from hitlchat.gate.tools import definition
from hitlchat.project_tools import catalogue
from hitlchat.project_tools.catalogue import SOURCE, ProjectTool


@dataclass(frozen=True)
class Listed:
    """A function, and whatever tool has its name now."""

    made: ProjectTool
    row: Tool | None

    @property
    def is_offered(self) -> bool:
        return self.row is not None and self.row.source == SOURCE

    @property
    def is_current(self) -> bool:
        return self.row is not None and self.row.definition_hash == self.made.definition_hash

    @property
    def model_view(self) -> str:
        assert self.row is not None
        return canonical.pretty(definition(self.row)["function"], indent=2)


@only(may_author).reads
def functions(request: HttpRequest) -> HttpResponse:
    return render(request, "project_tools/functions.html", _side())


@only(may_author).reads
def function(request: HttpRequest, name: str) -> HttpResponse:
    context = _side()
    shown = next((each for each in context["functions"] if each.made.name == name), None)
    if shown is None:
        raise Http404(f"This project declares no tool {name!r}.")
    return render(request, "project_tools/functions.html", {**context, "shown": shown})


def _side() -> dict[str, Any]:
    made = catalogue.tools()
    rows = {row.name: row for row in Tool.objects.filter(name__in=made)}
    listed = [Listed(each, rows.get(name)) for name, each in sorted(made.items())]
    return {"section": "studio", "functions": listed, "shown": None}


urlpatterns = [
    path("", functions, name="project-tools"),
    path("<str:name>", function, name="project-tool"),
]
