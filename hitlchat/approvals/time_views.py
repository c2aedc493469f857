"""Time left: how long a question is still open, on whatever page, and five minutes more in its last one."""

from datetime import datetime
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET, require_POST

from hitlchat.accounts.access import person
from hitlchat.gate import card, decide, deciders, extending
from hitlchat.gate.actor import actor_of
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status

# Where a page shows the time: on a card, on the line of a call in a transcript, in the list.
PLACES = ("card", "line", "list")


@login_required
@require_GET
def left(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """The time anew; nothing (204) if the page shows it as it is (`was`), or if the question is over."""
    found = get_object_or_404(deciders.seen_by(person(request).pk, [approval_id]), pk=approval_id)
    is_known = _moment(request.GET.get("was", "")) == found.call.deadline
    if is_known or found.call.status != Status.WAITING:
        return HttpResponse(status=204)
    return _piece(request, found, request.GET.get("place", ""))


@login_required
@require_POST
def extend(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Put the deadline off if this is the question's last minute; the time as it is then, and why if it was not."""
    note, user = "", person(request)
    seen = _moment(request.POST.get("deadline", ""))
    try:
        if seen is None:
            note = "The page sent no usable deadline. Reload it."
        else:
            extending.extend(approval_id, actor_of(request), seen=seen)
    except decide.NoSuchApproval as error:
        raise Http404(str(error)) from error
    except (decide.AlreadySettled, extending.NotNow) as error:
        note = str(error)
    if not request.headers.get("HX-Request"):
        return redirect("approval", approval_id)
    found = get_object_or_404(deciders.seen_by(user.pk, [approval_id]), pk=approval_id)
    return _piece(request, found, request.POST.get("place", ""), note)


def _moment(text: str) -> datetime | None:
    """Return the moment with its time zone; None if the text is none."""
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return found if found and found.tzinfo else None


def _piece(request: HttpRequest, found: Approval, place: str, note: str = "") -> HttpResponse:
    shown = {
        "id": found.pk,
        "key": card.key(found.pk, found.call.round),
        "deadline": found.call.deadline,
        "place": place if place in PLACES else PLACES[0],
        "note": note,
        "added": request.method == "POST" and not note,
    }
    return render(request, "approvals/_left.html", shown)
