"""One approval on a page of its own, and the answer by plain HTTP; nothing here changes anything on GET (SR-22)."""

from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from hitlchat.accounts.people import person
from hitlchat.approvals import answering
from hitlchat.gate import canonical, decide, deciders, known, reasons, taking_back
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card, card
from hitlchat.gate.grants import words
from hitlchat.gate.grants.scope import BadGrant
from hitlchat.gate.models import Approval, CallerKind, Decision, Verdict
from hitlchat.gate.status import Status

HEADINGS = {
    Status.WAITING: "A call needs your answer",
    Status.EXPIRED: "Nobody answered this call in time",
    Status.WITHDRAWN: "This call was withdrawn",
}


@login_required
@require_GET
def approval(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    return _page(request, get_object_or_404(_mine(request), pk=approval_id))


@login_required
@require_POST
def answer(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Approve, with changed arguments or without, or decline. The fragment for htmx is the call as it stands now."""
    note = ""
    try:
        note = answering.answer(approval_id, Actor(person(request).pk, "session"), request.POST)
    except decide.NoSuchApproval as error:
        raise Http404(str(error)) from error
    except (decide.AlreadySettled, decide.OtherDigest, decide.BadEdit, BadGrant, reasons.BadReason) as error:
        note = f"{error} Your answer did not count."
    return _told(request, approval_id, note)


@login_required
@require_POST
def take_back(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Withdraw the call if it was approved and has not started."""
    note = ""
    try:
        taking_back.take_back_approval(approval_id, Actor(person(request).pk, "session"))
    except decide.NoSuchApproval as error:
        raise Http404(str(error)) from error
    except taking_back.TooLate as error:
        note = str(error)
    return _told(request, approval_id, note)


@login_required
@require_GET
def outcome(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """The fragment again, for a page that waits for the call to settle."""
    return _fragment(request, get_object_or_404(_mine(request), pk=approval_id))


def _told(request: HttpRequest, approval_id: UUID, note: str) -> HttpResponse:
    found = get_object_or_404(_mine(request), pk=approval_id)
    if request.headers.get("HX-Request"):
        return _fragment(request, found, note)
    return redirect("approval", approval_id) if not note else _page(request, found, note)


def _mine(request: HttpRequest) -> QuerySet[Approval]:
    return deciders.seen_by(person(request).pk)


def _fragment(request: HttpRequest, found: Approval, note: str = "") -> HttpResponse:
    """For the Studio's page too, which has a heading of its own."""
    shown_on = urlsplit(request.headers.get("HX-Current-URL", "")).path
    on_its_page = shown_on == reverse("approval", args=[found.pk])
    context = _context(found, note) | {"on_its_page": on_its_page, "whole": on_its_page}
    return render(request, "approvals/_answered.html", context)


def _page(request: HttpRequest, found: Approval, note: str = "") -> HttpResponse:
    context = {"section": "approvals", "whole": True, **_context(found, note)}
    return render(request, "approvals/page.html", context, status=409 if note else 200)


def _context(found: Approval, note: str = "") -> dict[str, object]:
    waiting = found.call.status == Status.WAITING
    decisions = list(found.decisions.select_related("person"))
    edited = [decision.edited_arguments for decision in decisions if decision.edited_arguments is not None]
    return {
        "approval": found,
        "call": found.call,
        "card": card(found) if waiting else None,
        "was": None if waiting else _as_shown(found),
        "changed": canonical.pretty(edited[-1], indent=2) if edited else "",
        "for_client": found.call.caller_kind == CallerKind.MCP,
        "moving": found.call.status in (Status.APPROVED, Status.EXECUTING),
        "note": note,
        "grants": [(each, words.sentence(each)) for each in found.grants.all()],
        "decisions": [_said(decision) for decision in decisions],
        "heading": HEADINGS.get(Status(found.call.status), "This call has its answer"),
    }


def _as_shown(found: Approval) -> Card | None:
    """The card of a call that was settled; None where an older record lacks a part of it."""
    try:
        return card(found)
    except KeyError:
        return None


def _said(decision: Decision) -> tuple[str, datetime]:
    word = "Approved" if decision.verdict == Verdict.APPROVE else "Declined"
    return f"{word} by {decision.person.get_username()}, {known.how(decision)}.", decision.decided_at
