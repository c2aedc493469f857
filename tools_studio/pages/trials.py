"""Trying a saved tool: a test run through the gate, its console, its preview alone, and its test cases."""

import re
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from hitlchat.accounts.access import HtmxRequest, person
from hitlchat.base import canonical
from hitlchat.gate import card
from hitlchat.gate.actor import Caller, actor_of
from hitlchat.gate.models import CallerKind, Tool, ToolCall
from hitlchat.gate.schema import BadArguments
from hitlchat.gate.status import Status
from tools_studio import argument_form, cases
from tools_studio.argument_form import BadInput
from tools_studio.cases import Case, Outcome
from tools_studio.models import Expectation
from tools_studio.pages import page
from tools_studio.pages.forms import ToolForm
from tools_studio.pages.page import author_only, authored, side
from tools_studio.spec import AuthoringError, draft_of

TEST_SECONDS = 45.0
# Their arguments were never seen to fit.
NOT_TRIED = (Status.REJECTED, Status.REFUSED)
# For all cases of one request together: a browser waits no longer with patience.
RUN_SECONDS = 45.0
ONE_LINE = 80
OPEN = ("waiting", "running")


@author_only.posts
def test(request: HtmxRequest, name: str) -> HttpResponse:
    """Run the saved tool once through the gate; the card of one that asks is shown here."""
    found = authored(name)
    try:
        arguments = argument_form.arguments(found.input_schema, request.POST)
    except BadInput as error:
        return _answer(request, found, {"problem": str(error), "field": error.html_name})
    call = async_to_sync(cases.attempt)(found.name, arguments, _caller(request), TEST_SECONDS)
    if request.POST.get("keep") and call.status not in NOT_TRIED:
        cases.keep(found, arguments)
    return _answer(request, found, page.console(call, actor_of(request)))


@author_only.reads
def console(request: HtmxRequest, name: str, call_id: UUID) -> HttpResponse:
    """Show the outcome of a test; 204 while it is open, so that its card stays."""
    found = authored(name)
    tests = ToolCall.objects.filter(tool=found, caller=person(request), caller_kind=CallerKind.STUDIO)
    call = get_object_or_404(tests.select_related("approval"), pk=call_id)
    return _answer(request, found, page.console(call, actor_of(request))) if call.settled else HttpResponse(status=204)


@author_only.posts
def preview(request: HtmxRequest, name: str) -> HttpResponse:
    """Show the preview as an approver would see it; nobody is asked, and nothing runs."""
    found = authored(name)
    try:
        arguments = argument_form.arguments(found.input_schema, request.POST)
        effect = async_to_sync(cases.look)(found, arguments, _caller(request))
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


def _answer(request: HtmxRequest, tool: Tool, result: dict[str, Any]) -> HttpResponse:
    """Answer with a fragment for htmx, else with the whole page."""
    if request.htmx:
        context = {"stage": page.stage_of(tool), "is_live": True, **page.waiting(request, tool), **result}
        return render(request, "studio/_tried.html", context)
    found = authored(tool.name)
    form = ToolForm(request, tool=found, draft=draft_of(found))
    return render(request, "studio/tool.html", page.of(request, form, result))


def read(tool: Tool, user_id: int, typed: QueryDict) -> tuple[Case, ToolCall | None]:
    """Return the typed case, and the test run that it was made from, if `call` names one. Raises: AuthoringError

    `arguments` is JSON; without it they are those of the run, else from the fields of a test pane.
    """
    call: ToolCall | None = None
    if call_id := typed.get("call", ""):
        try:
            call = ToolCall.objects.get(pk=call_id, tool=tool, caller_id=user_id, caller_kind=CallerKind.STUDIO)
        except (ToolCall.DoesNotExist, ValidationError) as error:
            raise AuthoringError({"call": "There is no such test run of yours."}) from error
    expectation = typed.get("expectation", "") or Expectation.ANYTHING.value
    arguments = _arguments(tool, call, typed)
    case = Case(typed.get("name", "").strip(), arguments, expectation, _expected(tool, call, expectation, typed))
    return case, call if call is not None and call.arguments == case.arguments else None


def _arguments(tool: Tool, call: ToolCall | None, typed: QueryDict) -> dict[str, Any]:
    if "arguments" not in typed and call is not None:
        return dict(call.arguments)
    try:
        if "arguments" not in typed:
            return argument_form.arguments(tool.input_schema, typed)
        value = canonical.loads(typed.get("arguments", "") or "{}")
    except BadInput as error:
        raise AuthoringError({"arguments": str(error)}) from error
    except canonical.NotJson as error:
        raise AuthoringError({"arguments": f"It is not JSON: {error}."}) from error
    if not isinstance(value, dict):
        raise AuthoringError({"arguments": 'Expected a JSON object such as {"text": "hello"}.'})
    return value


def _expected(tool: Tool, call: ToolCall | None, expectation: str, typed: QueryDict) -> Any:
    text = typed.get("expected", "").replace("\r\n", "\n")
    if expectation == Expectation.ANYTHING:
        return None
    if not text and call is not None:
        if expectation == Expectation.FAILS:
            return str((call.error or {}).get("message", "")) or (call.reason if call.status == Status.REJECTED else "")
        if call.status != Status.SUCCEEDED:
            raise AuthoringError({"expected": "That test run has no result to expect."})
        return call.result if expectation == Expectation.EQUALS else ""
    # JSON where it is JSON, unless the tool says that it gives text; everything else is the text itself.
    if expectation != Expectation.EQUALS or (tool.output_schema or {}).get("type") == "string":
        return text
    try:
        return canonical.loads(text)
    except canonical.NotJson:
        return text


@author_only.reads
def listed(request: HttpRequest, name: str) -> HttpResponse:
    return _page(request, authored(name))


@author_only.posts
def add(request: HttpRequest, name: str) -> HttpResponse:
    tool = authored(name)
    try:
        case, call = read(tool, person(request).pk, request.POST)
        cases.add(tool, case, call)
    except AuthoringError as error:
        typed = {key: request.POST.get(key, "") for key in ("name", "arguments", "expectation", "expected")}
        return _page(request, tool, status=422, problems=error.errors, typed=typed)
    return redirect(reverse("tool-cases", args=[name], query={"added": case.name}))


@author_only.posts
def run(request: HttpRequest, name: str) -> HttpResponse:
    """Run the case whose id is in `case`, else all that do not wait for an answer already."""
    tool = authored(name)
    rows = cases.rows(tool)
    wanted = request.POST.get("case", "")
    if wanted:
        rows = rows.filter(pk=int(wanted) if wanted.isdecimal() and len(wanted) < 18 else 0)
    left = [row for row in rows if wanted or cases.outcome_of(row, tool).state != "waiting"]
    not_run = async_to_sync(cases.run_all)(left, tool, _caller(request), RUN_SECONDS)
    return redirect(reverse("tool-cases", args=[name], query={"left": not_run} if not_run else {}))


@author_only.posts
def delete(_request: HttpRequest, name: str, case_id: int) -> HttpResponse:
    get_object_or_404(cases.rows(authored(name)), pk=case_id).delete()
    return redirect("tool-cases", name)


@author_only.reads
def settled(request: HttpRequest, name: str, case_id: int) -> HttpResponse:
    """Show the fragment of one case once its run has an outcome; 204 before."""
    tool = authored(name)
    shown = _shown(request, tool)
    case = next((each for each in shown if each["row"].pk == case_id), None)
    if case is None:
        raise Http404
    if case["outcome"].state in OPEN:
        return HttpResponse(status=204)
    return render(
        request,
        "studio/_case_live.html",
        {"tool": tool, "case": case, "stage": page.stage_of(tool), **_counted(shown)},
    )


def _page(request: HttpRequest, tool: Tool, status: int = 200, **more: Any) -> HttpResponse:
    shown = _shown(request, tool)
    example = canonical.pretty(tool.example or {}, indent=2)
    empty = {"arguments": example, "expectation": Expectation.EQUALS.value}
    context = {
        "tool": tool, "tab": "cases", "stage": page.stage_of(tool), "cases": shown,
        "expectations": Expectation.choices, "typed": empty, "most": cases.MOST_CASES,
        "added": request.GET.get("added", ""),
        "left": request.GET.get("left", ""), **_counted(shown), **side(request, tool), **more,
    }  # fmt: skip
    return render(request, "studio/cases.html", context, status=status)


def _shown(request: HttpRequest, tool: Tool) -> list[dict[str, Any]]:
    """Return each case with its outcome; a waiting call's card is for the one who may answer it."""
    user_id = person(request).pk
    shown = []
    for row in cases.rows(tool):
        outcome = cases.outcome_of(row, tool)
        asks = row.last_call is not None and row.last_call.caller_id == user_id and outcome.state == "waiting"
        open_card = card.card(row.last_call.approval, actor_of(request)) if row.last_call and asks else None
        # On one line if it fits.
        line = canonical.pretty(row.arguments)
        arguments = line if len(line) <= ONE_LINE else canonical.pretty(row.arguments, indent=2)
        shown.append({"row": row, "outcome": outcome, "arguments": arguments, "card": open_card})
    return shown


def _counted(shown: list[dict[str, Any]]) -> dict[str, Any]:
    judged: list[Outcome] = [each["outcome"] for each in shown]
    all_passed = bool(judged) and all(each.state == "passed" for each in judged)
    return {"tally": cases.tally(judged) if judged else "", "all_passed": all_passed}
