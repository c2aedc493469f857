"""The page of everything that waits for a person, its refreshes, and how many there are for every other page."""

import json

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from hitlchat.accounts.people import person
from hitlchat.approvals import waiting
from hitlchat.gate import deciders

# The header with the count, for the script of the bar.
COUNT = "approvals-count"


@login_required
@never_cache
@require_GET
def page(request: HttpRequest) -> HttpResponse:
    found = waiting.of(person(request).pk)
    return render(request, "approvals/list.html", {"section": "approvals", "waiting": found})


@login_required
@never_cache
@require_GET
def live(request: HttpRequest) -> HttpResponse:
    """The list and what became of what was on it; or nothing (204) if the page shows it as it is (`was`, `more`)."""
    user = person(request)
    found, was = waiting.of(user.pk), request.GET.getlist("was")
    if was == found.marks and request.GET.get("more", "0") == str(found.more):
        response = HttpResponse(status=204)
    else:
        shown = {"waiting": found, "gone": waiting.gone(user.pk, [m for m in was if m not in found.marks])}
        response = render(request, "approvals/_live.html", shown)
    response["HX-Trigger"] = json.dumps({COUNT: found.count})
    return response


@never_cache
@require_GET
def count(request: HttpRequest) -> HttpResponse:
    """How many wait, as a number; nothing (204) for whoever is not signed in."""
    if not request.user.is_authenticated:
        return HttpResponse(status=204)
    return HttpResponse(str(deciders.waiting_for(request.user.pk).count()), content_type="text/plain")
