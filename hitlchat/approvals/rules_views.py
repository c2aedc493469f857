"""The page on which administrators say who decides about a tool, whatever its source."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.administrators import administrators_only
from hitlchat.accounts.roles import named_groups
from hitlchat.approvals.rules_form import RulesForm
from hitlchat.gate import oversight, ruling, who
from hitlchat.gate.actor import actor_of
from hitlchat.gate.models import Tool

MOST_NAMED = 20


@administrators_only("Only administrators see and change who decides about a tool.")
@require_http_methods(["GET", "HEAD", "POST"])
def rules(request: HttpRequest, name: str) -> HttpResponse:
    tool = get_object_or_404(Tool, name=name)
    form = RulesForm(oversight.of(tool), request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return _page(request, tool, form, status=422 if form.is_bound else 200)
    actor = actor_of(request)
    try:
        ruling.change(tool, form.rules, actor, seen=request.POST.get("seen", ""))
    except ruling.BadRules as bad:
        form.refuse(bad)
        return _page(request, tool, form, status=422)
    except ruling.Stale as stale:
        form.add_error(None, str(stale))
        return _page(request, tool, form, status=409)
    messages.success(request, "It counts from now on.")
    return redirect("tool-rules", name)


def _page(request: HttpRequest, tool: Tool, form: RulesForm, status: int = 200) -> HttpResponse:
    standing = oversight.of(tool)
    able = list(ruling.able(standing)[: MOST_NAMED + 1])
    said = who.words(standing.as_json, who.REQUESTER)
    context = {
        "section": "studio",
        "tool": tool,
        "form": form,
        "seen": standing.digest,
        "said": said[:1].upper() + said[1:],
        "able": able[:MOST_NAMED],
        "more_able": len(able) > MOST_NAMED,
        "has_groups": named_groups().exists(),
        "asked_before": ruling.asked_before(tool),
        "fresh": tool.risk_level >= oversight.HIGHEST_RISK,
        "told": [str(each) for each in messages.get_messages(request)],
    }
    return render(request, "approvals/rules.html", context, status=status)
