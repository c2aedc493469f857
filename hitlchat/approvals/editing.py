"""Changing the arguments of a call that waits, step by step. Nothing is kept or decided here."""

import json
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.access import HtmxRequest
from hitlchat.approvals.answering import approval_for
from hitlchat.base import canonical
from hitlchat.base.visible import is_hidden
from hitlchat.gate import decide, deciders, editing
from hitlchat.gate.actor import actor_of
from hitlchat.gate.card import card
from hitlchat.gate.decide import AlreadySettled, BadEdit
from hitlchat.gate.models import Approval
from hitlchat.gate.schema import with_defaults
from hitlchat.gate.status import Status
from tools_studio import argument_form
from tools_studio.argument_form import BadInput, Field

Schema = dict[str, Any]
Arguments = dict[str, Any]

UNFIT: Final = _("You can change these arguments only as JSON text.")
OVER: Final = {"ws", "http"}


@dataclass(frozen=True)
class Form:
    """A form as it is shown.

    `fields` is None when it shows `json`. A `problem` is at the field `at`, if that is set.
    """

    fields: list[Field] | None
    json: str
    problem: str = ""
    at: str = ""
    can_be_fields: bool = True


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Show the form as fields or as JSON, or what a yes to its content would mean."""
    found = approval_for(request, approval_id)
    if found.call.status != Status.WAITING or found.call.tool is None:
        return _shown(request, found, {"gone": str(AlreadySettled(found.call))})
    try:
        decide.require(actor_of(request), found)
    except deciders.NotEntitled as others:
        return _shown(request, found, {"gone": str(others)})
    schema, original = found.call.tool.input_schema, found.disclosure["arguments"]
    if request.method != "POST":
        return _shown(request, found, {"form": _filled(schema, original)})
    step = request.POST.get("step", "")
    try:
        arguments = _read(schema, request.POST, original)
        if step == "review":
            # Back leads to what was typed: to JSON from JSON, and to fields from fields.
            back = "json" if "json" in request.POST else "fields"
            return _shown(request, found, {"review": editing.review(found, arguments), "back": back})
        form = _filled(schema, arguments, as_json=step == "json")
        if step == "fields" and form.fields is None:
            form = Form(None, form.json, str(UNFIT), "json")
    except (BadInput, BadEdit) as error:
        form = _again(schema, request.POST, original, error)
    return _shown(request, found, {"form": form})


def _shown(request: HtmxRequest, found: Approval, what: dict[str, Any]) -> HttpResponse:
    over = request.GET.get("over", "")
    context = {"card": card(found), "over": over if over in OVER else "http", **what}
    return render(request, "approvals/_edit.html" if request.htmx else "approvals/edit.html", context)


def _filled(schema: Schema, arguments: Arguments, *, as_json: bool = False) -> Form:
    """Return the form with these arguments in it; as fields if those can say all of them."""
    fields = argument_form.fields(schema, arguments) if _fits(schema, arguments) and not as_json else None
    # In JSON every character can be seen.
    text = canonical.pretty(arguments, indent=2)
    seen = "".join(json.dumps(char)[1:-1] if is_hidden(char) else char for char in text)
    return Form(fields, seen, can_be_fields=_has_fields(schema))


def _read(schema: Schema, typed: QueryDict, original: Arguments) -> Arguments:
    """Return what was typed into the form, which was filled with the `original` arguments. Raises: BadInput, BadEdit"""
    if "json" in typed:
        return editing.read(_json(typed))
    return argument_form.arguments(schema, typed, original)


def _again(schema: Schema, typed: QueryDict, original: Arguments, error: BadInput | BadEdit) -> Form:
    """Return the form as it was typed, with its problem."""
    problem = str(error)
    if "json" in typed:
        return Form(None, _json(typed), problem, "json", can_be_fields=_has_fields(schema))
    fields = [field.typed(typed) for field in argument_form.fields(schema, original)]
    at = error.html_name if isinstance(error, BadInput) else f"{argument_form.PREFIX}{error.argument}"
    return Form(fields, "", problem, at if at in {field.html_name for field in fields} else "")


def _json(typed: QueryDict) -> str:
    return str(typed["json"]).replace("\r\n", "\n")


def _fits(schema: Schema, arguments: Arguments) -> bool:
    """Return whether fields can hold the arguments as they are, and a person can see them in there."""
    if not _has_fields(schema) or any(map(is_hidden, canonical.pretty([arguments, list(schema["properties"])]))):
        return False
    typed = QueryDict(mutable=True)
    for field in argument_form.fields(schema, arguments):
        typed.update({field.html_name: field.value, field.empty_name: field.empty})
    try:
        made = argument_form.arguments(schema, typed, arguments)
    except BadInput:
        return False
    # As text: to Python, `1`, `1.0` and `True` would be equal.
    texts = {canonical.dumps(with_defaults(schema, each)) for each in (made, arguments)}
    return len(texts) == 1


def _has_fields(schema: Schema) -> bool:
    parts = schema.get("properties", {})
    return bool(parts) and all(isinstance(part, dict) for part in parts.values())
