"""The inbox: everything that waits for a person, its refreshes, and the number of it for every other page. None of it
decides: the card's own forms do, and those of the batch."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_safe

from hitlchat.accounts.people import person
from hitlchat.approvals import views
from hitlchat.approvals.inbox import counting, filters, lately, lines
from hitlchat.gate import deciders
from hitlchat.gate.models import Approval


@login_required
@never_cache
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """With the card of the call that is chosen (`call`), else of the most urgent one."""
    user = person(request)
    shown = filters.of(request.GET, user.pk)
    listed = lines.of(user.pk, shown)
    chosen, picked = _chosen(request, listed)
    context = {"section": "approvals", "filter": shown, "listed": listed, **lately.shown(user.pk)}
    context |= {"picked": picked, "chosen": chosen, "approvals_waiting": listed.waiting}
    if chosen:
        context |= views.card_context(request, chosen)
    return render(request, "approvals/inbox/page.html", context)


@login_required
@never_cache
@require_GET
def live(request: HttpRequest) -> HttpResponse:
    """The list and what was decided lately; nothing (204) if the page shows the list as it is (`was`)."""
    user = person(request)
    shown = filters.of(request.GET, user.pk, narrow=True)
    listed = lines.of(user.pk, shown)
    if request.GET.get("was") == listed.mark:
        return HttpResponse(status=204)
    context = {"filter": shown, "listed": listed, "anew": True, **lately.shown(user.pk)}
    return render(request, "approvals/inbox/_live.html", context)


@login_required
@never_cache
@require_GET
def decided(request: HttpRequest) -> HttpResponse:
    """What was decided lately, by itself: an approved call goes on after its answer."""
    return render(request, "approvals/inbox/_lately.html", lately.shown(person(request).pk))


@never_cache
@require_GET
def count(request: HttpRequest) -> HttpResponse:
    """How many wait, as it is shown; nothing (204) for whoever is not signed in."""
    user = request.user
    if user.pk is None or not user.is_authenticated:
        return HttpResponse(status=204)
    return HttpResponse(str(counting.waiting(user.pk)), content_type="text/plain")


def _chosen(request: HttpRequest, listed: lines.Listed) -> tuple[Approval | None, bool]:
    """The approval whose card is shown, and whether the person picked it. An id that is none, or of what they may not
    see, is passed over."""
    try:
        wanted = UUID(request.GET.get("call", ""))
    except ValueError:
        wanted = None
    picked = deciders.seen_by(person(request).pk, [wanted]).first() if wanted else None
    if picked is not None:
        return picked, True
    first = listed.lines[0].approval.pk if listed.lines else None
    return (deciders.seen_by(person(request).pk, [first]).first() if first else None), False
