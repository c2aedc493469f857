"""Changing the arguments of a call that waits, step by step. Nothing is kept or decided here."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.access import HtmxRequest, person
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

UNFIT = _("These arguments can only be changed as JSON text.")


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


def filled(schema: Schema, arguments: Arguments, *, as_json: bool = False) -> Form:
    """Return the form with these arguments in it; as fields if those can say all of them."""
    fits = _fits(schema, arguments)
    fields = argument_form.fields(schema, arguments) if fits and not as_json else None
    return Form(fields, as_text(arguments), can_be_fields=_has_fields(schema))


def read(schema: Schema, typed: QueryDict, asked: Arguments) -> Arguments:
    """Return what was typed into it, which was filled with what was `asked`. BadInput, BadEdit."""
    if "json" in typed:
        return editing.read(str(typed["json"]).replace("\r\n", "\n"))
    return argument_form.arguments(schema, typed, asked)


def again(schema: Schema, typed: QueryDict, asked: Arguments, error: BadInput | BadEdit) -> Form:
    """Return the form as it was typed, with its problem."""
    if "json" in typed:
        text = str(typed["json"]).replace("\r\n", "\n")
        return Form(None, text, str(error), "json", can_be_fields=_has_fields(schema))
    fields = [field.typed(typed) for field in argument_form.fields(schema, asked)]
    return Form(fields, "", *_placed(error, fields))


def as_text(arguments: Arguments) -> str:
    """Return JSON in which every character can be seen."""
    text = canonical.pretty(arguments, indent=2)
    return "".join(json.dumps(char)[1:-1] if is_hidden(char) else char for char in text)


def _placed(error: BadInput | BadEdit, fields: list[Field]) -> tuple[str, str]:
    if isinstance(error, BadInput):
        return str(error), error.html_name
    said = str(error)
    at = (field.html_name for field in fields if said.startswith((f"{field.name}: ", f"{field.name}.")))
    return said, next(at, "")


def _fits(schema: Schema, arguments: Arguments) -> bool:
    """Return whether fields can hold the arguments as they are, and a person can see them in there."""
    if not _has_fields(schema) or any(map(is_hidden, canonical.pretty([arguments, list(schema["properties"])]))):
        return False
    typed = QueryDict(mutable=True)
    for field in argument_form.fields(schema, arguments):
        typed.update({field.html_name: field.value, field.empty_name: field.empty})
    try:
        made = read(schema, typed, arguments)
    except BadInput:
        return False
    # As text: to Python, `1`, `1.0` and `True` would be equal.
    return _spelled(schema, made) == _spelled(schema, arguments)


def _spelled(schema: Schema, arguments: Arguments) -> str:
    return canonical.dumps(with_defaults(schema, arguments))


def _has_fields(schema: Schema) -> bool:
    parts = schema.get("properties", {})
    return bool(parts) and all(isinstance(part, dict) for part in parts.values())


OVER = {"ws", "http"}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Show the form as fields or as JSON, or what a yes to its content would mean."""
    rows = deciders.seen_by(person(request).pk, [approval_id]).select_related("call__tool")
    found = get_object_or_404(rows, pk=approval_id)
    if found.call.status != Status.WAITING or found.call.tool is None:
        return _shown(request, found, {"gone": str(AlreadySettled(found.call))})
    try:
        decide.require(actor_of(request), found)
    except deciders.NotEntitled as others:
        return _shown(request, found, {"gone": str(others)})
    schema, asked = found.call.tool.input_schema, found.disclosure["arguments"]
    if request.method != "POST":
        return _shown(request, found, {"form": filled(schema, asked)})
    try:
        arguments = read(schema, request.POST, asked)
        if request.POST.get("step") != "review":
            return _shown(request, found, {"form": _other(schema, arguments, request.POST.get("step", ""))})
        return _shown(request, found, {"review": editing.review(found, arguments), "back": _back(request)})
    except (BadInput, BadEdit) as error:
        return _shown(request, found, {"form": again(schema, request.POST, asked, error)})


def _back(request: HttpRequest) -> str:
    """The step from what was typed as JSON back to that, and from fields to fields."""
    return "json" if "json" in request.POST else "fields"


def _other(schema: dict[str, Any], arguments: dict[str, Any], step: str) -> Form:
    form = filled(schema, arguments, as_json=step == "json")
    unfit = step == "fields" and form.fields is None
    return form if not unfit else Form(None, form.json, str(UNFIT), "json")


def _shown(request: HtmxRequest, found: Approval, what: dict[str, Any]) -> HttpResponse:
    over = request.GET.get("over", "")
    context = {"card": card(found), "over": over if over in OVER else "http", **what}
    page = "approvals/_edit.html" if request.htmx else "approvals/edit.html"
    return render(request, page, context)
