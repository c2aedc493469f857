"""Publishing a tool, and taking it out of the catalog again."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from hitlchat.gate.actor import actor_of
from tools_studio import authoring
from tools_studio.authoring import AuthoringError
from tools_studio.forms import ToolForm
from tools_studio.more.access import author_only, authored
from tools_studio.pages import page


@author_only
@require_POST
def publish(request: HttpRequest, name: str) -> HttpResponse:
    found = authored(name)
    if request.POST.get("published") == "no":
        authoring.unpublish(found, actor_of(request))
        return redirect("tool", name)
    try:
        authoring.publish(found, actor_of(request))
    except AuthoringError as error:
        form = ToolForm(tool=found, draft=authoring.draft_of(found))
        context = page.of(request, form) | {"not_published": error.problems}
        return render(request, "studio/tool.html", context, status=422)
    return redirect("tool", name)
