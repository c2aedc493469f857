"""Changing the arguments of a call that waits, step by step. Nothing is kept or decided here: what is typed travels
with each step, and the yes goes to where every answer goes."""

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.people import person
from hitlchat.approvals import edit_form
from hitlchat.approvals.edit_form import Form
from hitlchat.gate import decide, deciders, editing
from hitlchat.gate.actor import actor_of
from hitlchat.gate.card import card
from hitlchat.gate.decide import AlreadySettled, BadEdit
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status
from tools_studio.argument_form import BadInput

OVER = {"ws", "http"}


@login_required
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """The form; what was typed as fields or as JSON instead; or what a yes to it would mean."""
    rows = deciders.seen_by(person(request).pk, [approval_id]).select_related("call__tool")
    found = get_object_or_404(rows, pk=approval_id)
    if found.call.status != Status.WAITING or found.call.tool is None:
        return _shown(request, found, {"gone": str(AlreadySettled(found.call))})
    try:
        decide.require(actor_of(request), found)
    except deciders.NotEntitled as others:
        return _shown(request, found, {"gone": str(others)})
    schema, asked = found.call.tool.input_schema, found.disclosure["arguments"]
    if request.method == "GET":
        return _shown(request, found, {"form": edit_form.filled(schema, asked)})
    try:
        arguments = edit_form.read(schema, request.POST, asked)
        if request.POST.get("step") != "review":
            return _shown(request, found, {"form": _other(schema, arguments, request.POST.get("step", ""))})
        return _shown(request, found, {"review": editing.review(found, arguments), "back": _back(request)})
    except (BadInput, BadEdit) as error:
        return _shown(request, found, {"form": edit_form.again(schema, request.POST, error)})


def _back(request: HttpRequest) -> str:
    """The step from what was typed as JSON back to that, and from fields to fields."""
    return "json" if "json" in request.POST else "fields"


def _other(schema: dict[str, Any], arguments: dict[str, Any], step: str) -> Form:
    form = edit_form.filled(schema, arguments, as_json=step == "json")
    unfit = step == "fields" and form.fields is None
    return form if not unfit else Form(None, form.json, edit_form.UNFIT, "json")


def _shown(request: HttpRequest, found: Approval, what: dict[str, Any]) -> HttpResponse:
    over = request.GET.get("over", "")
    context = {"card": card(found), "over": over if over in OVER else "http", **what}
    page = "approvals/_edit.html" if request.headers.get("HX-Request") else "approvals/edit.html"
    return render(request, page, context)
