"""Choosing tools and getting them as a file."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from hitlchat.gate.models import Tool
from tools_studio import exchange
from tools_studio.drafts import SOURCE
from tools_studio.exchange import TooMuch
from tools_studio.more.access import author_only
from tools_studio.pages.listing import side


@author_only
@require_GET
def page(request: HttpRequest) -> HttpResponse:
    """The file with the tools that are named, or with `all`; the page to choose them without either."""
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
    return _file(text, names[0] if len(names) == 1 else "hitlchat")


def _choice(request: HttpRequest, status: int, problem: str = "") -> HttpResponse:
    said = problem or ("Choose at least one tool." if status != 200 else "")
    listed = Tool.objects.filter(source=SOURCE).select_related("script").defer("input_schema", "output_schema")
    context = {"exportable": listed, "problem": said, **side(request)}
    return render(request, "studio/export.html", context, status=status)


def _file(text: str, stem: str) -> HttpResponse:
    response = HttpResponse(text, content_type="application/json")
    day = timezone.localdate().isoformat()
    response["Content-Disposition"] = f'attachment; filename="{stem}-tools-{day}.json"'
    response["Cache-Control"] = "no-store"
    return response
