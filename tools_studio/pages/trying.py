"""Trying a saved tool: a test run through the gate like every other call, its console, and its preview alone."""

import re
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET, require_POST

from hitlchat.accounts.access import person
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import CallerKind, Tool, ToolCall
from hitlchat.gate.schema import BadArguments
from hitlchat.gate.status import Status
from tools_studio import argument_form, examples, trials
from tools_studio.argument_form import BadInput
from tools_studio.columns import draft_of
from tools_studio.pages import page
from tools_studio.pages.access import author_only, authored
from tools_studio.pages.forms import ToolForm

TEST_SECONDS = 45.0
# Their arguments were never seen to fit.
NOT_TRIED = (Status.REJECTED, Status.REFUSED)


@author_only
@require_POST
def test(request: HttpRequest, name: str) -> HttpResponse:
    """Run the saved tool once, through the gate like everyone else; a gated one is asked about right here."""
    found = authored(name)
    try:
        arguments = argument_form.arguments(found.input_schema, request.POST)
    except BadInput as error:
        return _answer(request, found, {"problem": str(error), "field": error.html_name})
    call = async_to_sync(trials.attempt)(found.name, arguments, _caller(request), TEST_SECONDS)
    if request.POST.get("keep") and call.status not in NOT_TRIED:
        examples.keep(found, arguments)
    return _answer(request, found, page.console(call))


@author_only
@require_GET
def console(request: HttpRequest, name: str, call_id: UUID) -> HttpResponse:
    """What a test came to; nothing at all while that is still open, so that its card stays as it is."""
    found = authored(name)
    tests = ToolCall.objects.filter(tool=found, caller=person(request), caller_kind=CallerKind.STUDIO)
    call = get_object_or_404(tests.select_related("approval"), pk=call_id)
    return _answer(request, found, page.console(call)) if call.settled else HttpResponse(status=204)


@author_only
@require_POST
def preview(request: HttpRequest, name: str) -> HttpResponse:
    """The preview that an approver would be shown; nothing is asked and nothing executed."""
    found = authored(name)
    try:
        arguments = argument_form.arguments(found.input_schema, request.POST)
        effect = async_to_sync(trials.look)(found, arguments, _caller(request))
    except BadInput as error:
        return _answer(request, found, {"problem": str(error), "field": error.html_name})
    except BadArguments as error:
        return _answer(request, found, {"problem": str(error)})
    failed = re.search(r"\(line (\d+)\)$", effect.error.value.plain) if effect and effect.error else None
    line = failed[1] if failed else ""
    return _answer(request, found, {"effect": effect, "previewed": True, "line": line})


def _caller(request: HttpRequest) -> Caller:
    user = person(request)
    return Caller("studio", user.pk, user.get_username())


def _answer(request: HttpRequest, tool: Tool, result: dict[str, Any]) -> HttpResponse:
    """The fragment for htmx, with where the tool stands now; without htmx, the whole page around it."""
    if request.headers.get("HX-Request"):
        context = {"tool": tool, "standing": page.standing_of(tool), "is_live": True, **result}
        return render(request, "studio/_tried.html", context)
    found = authored(tool.name)
    form = ToolForm(tool=found, draft=draft_of(found))
    return render(request, "studio/tool.html", page.of(request, form, result))
