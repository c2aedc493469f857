"""The page of a tool beside its form, who may see it, and where it stands between its draft and the catalog."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from hitlchat.accounts.access import only, person
from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.gate import prompt
from hitlchat.gate.actor import Actor, actor_of
from hitlchat.gate.card import card
from hitlchat.gate.models import CallerKind, Tool, ToolCall
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.stopping import NOT_STARTED
from tools_studio import argument_form, cases, inspection, spec, variables
from tools_studio.language import signature
from tools_studio.models import Expectation, Script
from tools_studio.pages.forms import ToolForm, declared
from tools_studio.pages.listing import side
from tools_studio.spec import SOURCE

author_only = only(may_author)
administrator_only = only(may_administer)
MOST_LINKS = 5


def authored(name: str) -> Tool:
    """The authored tool of this name, or the page that says there is none."""
    return get_object_or_404(Tool.objects.select_related("script"), name=name, source=SOURCE)


@dataclass(frozen=True)
class Stage:
    """`why_not` says what keeps the tool from being published; empty when it can be, or is."""

    state: str
    why_not: str
    passed: ToolCall | None
    missing: dict[str, str]


def stage_of(tool: Tool) -> Stage:
    """Return the stage of the tool between its draft and the catalog; its script is loaded."""
    script: Script = tool.script
    missing = dict(variables.resolve(spec.stored_variables(script).values()).missing)
    passed = cases.passed(tool)
    why_not = "" if passed else _("Run a test first: none has passed since the last edit.")
    if missing:
        why_not = " ".join([*missing.values(), _("The tool stays a draft until then.")])
    state = "published" if tool.published else "draft" if why_not else "ready"
    if script.revoked:
        state, why_not = "revoked", _("A revoked tool must not run.")
    return Stage(state, why_not, passed, missing)


def open_calls(tool: Tool) -> tuple[int, int]:
    """Return how many calls of the tool wait for an answer, and how many were cleared and have not started yet."""
    statuses = list(tool.calls.filter(status__in=NOT_STARTED).values_list("status", flat=True))
    waiting = statuses.count(Status.WAITING)
    return waiting, len(statuses) - waiting


def of(request: HttpRequest, form: ToolForm, result: dict[str, Any] | None = None) -> dict[str, Any]:
    """The context of `studio/tool.html`. `result` is what a test just came to; else the one that is still open."""
    tool = form.tool
    values = form.data if form.is_bound else form.initial
    code = str(values.get("code", "")).replace("\r\n", "\n")
    description = str(values.get("description", "")).strip()
    context = {
        "form": form,
        "tool": tool,
        "inspection": inspection.inspect(str(values.get("name", "")), code, declared(values), description),
        "may_administer": may_administer(person(request)),
        **side(request, tool),
    }
    if tool is None:
        return context
    if result is None:
        # The person's newest test of the tool that is not settled, so that a reload does not lose it.
        tests = ToolCall.objects.filter(tool=tool, caller=person(request), caller_kind=CallerKind.STUDIO)
        newest = tests.exclude(status__in=SETTLED).select_related("approval").order_by("-created_at").first()
        result = console(newest, actor_of(request)) if newest else {}
    filled = (
        prompt.render(tool.prompt_template, tool.name, tool.example) if tool.prompt_template and tool.example else ""
    )
    saved = {
        "stage": stage_of(tool),
        "arguments": argument_form.fields(tool.input_schema, tool.example),
        "has_preview": signature.preview_of(tool.script.code) is not None,
        "prompt_example": filled,
        **waiting(request, tool),
    }
    return context | saved | result


def console(call: ToolCall, viewer: Actor) -> dict[str, Any]:
    """Return what is shown of a test: its card while it waits for an answer, then what came of it."""
    if call.status == Status.WAITING:
        return {"call": call, "card": card(call.approval, viewer)}
    return {"call": call, "expectations": Expectation.choices, "failed": call.status == Status.FAILED}


def waiting(request: HttpRequest, tool: Tool) -> dict[str, Any]:
    """Return how many calls saving or deleting `tool` would withdraw, and the person's own of those that wait."""
    unanswered, cleared = open_calls(tool)
    own = ToolCall.objects.filter(tool=tool, caller=person(request), status=Status.WAITING)
    newest = own.select_related("approval").order_by("-created_at")[:MOST_LINKS] if unanswered else []
    return {"tool": tool, "asked": unanswered, "cleared": cleared, "own": newest}
