"""The pages on which administrators word what models read about calls that were declined, edited, late or refused."""

from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from hitlchat.accounts.access import administrators_only
from hitlchat.gate import results
from hitlchat.gate.actor import actor_of
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import ModelText, Outcome, Tool
from hitlchat.gate.models.tools import LONGEST_TEXT

MOST_TOOLS: Final = 500

_administrators_only = administrators_only("Only administrators may see and change the texts for models.")


@_administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show the texts of all tools, or of the one with this name."""
    tool, typed = _tool(name), None
    if request.method == "POST":
        typed = _typed(request.POST)
        try:
            confirmed = request.POST.get("confirm_lowering") == "on"
            results.save(tool, typed, actor_of(request), confirmed=confirmed)
        except NotConfirmed as error:
            context = _context(tool, typed) | {"refused": False, "weaker": error.weaker}
            return render(request, "texts/page.html", context, status=422)
        except results.BadTexts:
            # Each field says itself what is wrong with it.
            return render(request, "texts/page.html", _context(tool, typed), status=422)
        messages.success(request, _("Saved. Models read these texts from now on."))
        return redirect(_address(tool))
    return render(request, "texts/page.html", _context(tool))


@_administrators_only
@require_POST
def example(request: HttpRequest, name: str = "") -> HttpResponse:
    """Return what a model would read by what is typed at one field (`outcome`), or what is wrong with it."""
    found = results.fields(_tool(name), _typed(request.POST))
    field = next((each for each in found if each.outcome == request.GET.get("outcome")), None)
    if field is None:
        raise Http404("There is no such outcome.")
    return render(request, "texts/_example.html", {"field": field})


def _tool(name: str) -> Tool | None:
    return get_object_or_404(Tool, name=name) if name else None


def _address(tool: Tool | None) -> str:
    return reverse("tool-texts", args=[tool.name]) if tool else reverse("texts")


def _typed(sent: QueryDict) -> dict[str, str]:
    return {outcome: results.tidy(sent.get(outcome, "")) for outcome in Outcome.values}


def _context(tool: Tool | None, typed: dict[str, str] | None = None) -> dict[str, object]:
    context: dict[str, object] = {
        "section": "policies",
        "tool": tool,
        "fields": results.fields(tool, typed),
        "longest": LONGEST_TEXT,
        "address": _address(tool),
        "refused": typed is not None,
    }
    if tool is None:
        named = set(ModelText.objects.filter(tool__isnull=False).values_list("tool__name", flat=True))
        names = Tool.objects.values_list("name", flat=True)[:MOST_TOOLS]
        context["tools"] = [(each, each in named) for each in names]
    return context
