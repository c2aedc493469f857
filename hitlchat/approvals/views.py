"""One approval on a page of its own, and the answer by plain HTTP; nothing here changes anything on GET (SR-22)."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from hitlchat.accounts.people import person
from hitlchat.gate import decide, deciders
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import card
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status


@login_required
@require_GET
def approval(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    return _page(request, get_object_or_404(_mine(request), pk=approval_id))


@login_required
@require_POST
def answer(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Approve or decline. The fragment for htmx is the call as it stands now."""
    actor = Actor(person(request).pk, "session")
    # One verdict and one digest: of two, nobody can say which was meant (SR-13).
    verdicts, digests, note = request.POST.getlist("verdict"), request.POST.getlist("digest"), ""
    try:
        if verdicts == ["approve"] and len(digests) == 1:
            decide.approve(approval_id, actor, digest=digests[0])
        elif verdicts == ["decline"]:
            decide.decline(approval_id, actor, reason=request.POST.get("reason", "").replace("\x00", ""))
        else:
            note = "Nothing was decided: the answer was neither approve nor decline."
    except decide.NoSuchApproval as error:
        raise Http404(str(error)) from error
    except (decide.AlreadySettled, decide.OtherDigest) as error:
        note = f"{error} Your answer did not count."
    found = get_object_or_404(_mine(request), pk=approval_id)
    if request.headers.get("HX-Request"):
        return render(request, "approvals/_answered.html", _context(found, note))
    return redirect("approval", approval_id) if not note else _page(request, found, note)


@login_required
@require_GET
def outcome(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """The fragment again, for a page that waits for the call to settle."""
    return render(request, "approvals/_answered.html", _context(get_object_or_404(_mine(request), pk=approval_id)))


def _mine(request: HttpRequest) -> QuerySet[Approval]:
    return deciders.seen_by(person(request).pk)


def _page(request: HttpRequest, found: Approval, note: str = "") -> HttpResponse:
    return render(request, "approvals/page.html", _context(found, note), status=409 if note else 200)


def _context(found: Approval, note: str = "") -> dict[str, object]:
    waiting = found.call.status == Status.WAITING
    return {
        "approval": found,
        "call": found.call,
        "card": card(found) if waiting else None,
        "moving": found.call.status in (Status.APPROVED, Status.EXECUTING),
        "note": note,
    }
