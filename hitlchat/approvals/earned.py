"""The page of the earned rules: what the record proposes, what is in force, and how the others ended."""

from typing import Any, Final

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from hitlchat.accounts.access import administrators_only
from hitlchat.base import canonical
from hitlchat.gate import earned, lab
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.models import Grant, ToolCall

# Of the noes to calls of a tool.
MOST_CALLS: Final = 20


@administrators_only("Only administrators see what rules the record proposes.")
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    rules = giving.earned()
    context = {
        "section": "policies",
        "proposals": [_proposal(each) for each in earned.proposals()],
        "active": _rows(giving.active(rules), is_active=True),
        "ended": _rows(giving.ended(rules)[: giving.MOST_ENDED], is_active=False),
    }
    return render(request, "policies/earned.html", context)


def evidence(found: earned.Evidence) -> dict[str, Any]:
    """Return the context of `policies/_evidence.html`."""
    ids = [*found.against, *found.other_noes][:MOST_CALLS]
    noes = ToolCall.objects.filter(pk__in=ids).select_related("approval", "caller").order_by("-created_at", "-id")
    return {"evidence": found, "noes": noes}


def _proposal(found: earned.Proposal) -> dict[str, Any]:
    name = gettext("{tool}, earned {day}").format(tool=found.tool.name, day=timezone.localdate().isoformat())
    facts = {"tool": found.tool, "rule": found.rule, "name": name[: lab.LONGEST["name"]]}
    return facts | {"draft": canonical.dumps(found.draft), **evidence(found.evidence)}


def _rows(rules: QuerySet[Grant], *, is_active: bool) -> list[dict[str, Any]]:
    return [
        {
            "rule": each,
            "used": scope.used(each, gettext),
            "state": giving.STATES[giving.state(each, is_active=is_active)],
        }
        for each in rules
    ]
