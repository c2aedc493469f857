"""The file of what the filter finds. By POST, since every export goes on record."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_POST

from hitlchat.accounts.people import person
from hitlchat.approvals.history.form import Filters
from hitlchat.base.download import download
from hitlchat.gate.actor import actor_of
from hitlchat.gate.history import exporting, finding
from hitlchat.gate.history.exporting import FORMATS, Format


@login_required
@require_POST
def export(request: HttpRequest) -> HttpResponseBase:
    """422 with what is wrong; nothing is given away before it is on record."""
    form, wanted = Filters(request.POST), request.POST.get("format", "")
    known: dict[str, Format] = {each: each for each in FORMATS}
    if not form.is_valid() or wanted not in known:
        errors: dict[str, Any] = dict(form.errors)
        if wanted not in known:
            errors["format"] = [f"Expected one of {', '.join(FORMATS)}."]
        return render(request, "history/no_export.html", {"section": "history", "errors": errors}, status=422)
    chosen = known[wanted]
    pieces = exporting.export(finding.ways(person(request)), form.wanted, chosen, actor_of(request))
    return download(request, pieces, name=f"calls.{chosen}", kind=FORMATS[chosen])
