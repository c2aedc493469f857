"""One question and its answer: what a page's form gives, parsed strictly, its time left, and what came of it."""

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import reswap, retarget

from hitlchat.accounts.access import HtmxRequest, person
from hitlchat.base import canonical, moments
from hitlchat.base.forms import BadAnswer, read
from hitlchat.base.ids import uuid_of
from hitlchat.base.sentences import translatable, translated
from hitlchat.gate import attention, batch, decide, deciders, editing, question
from hitlchat.gate.actor import actor_of
from hitlchat.gate.attention import Looked, claimed
from hitlchat.gate.batch import MOST_TOGETHER
from hitlchat.gate.card import as_shown, card, key
from hitlchat.gate.decide import BadEdit
from hitlchat.gate.grants import scope
from hitlchat.gate.grants.scope import BadGrant
from hitlchat.gate.models import Approval, CallerKind, Decision, Verdict
from hitlchat.gate.question import Asking
from hitlchat.gate.status import Status
from hitlchat.gate.who import how, stance_of

NEITHER: Final = _("Nothing was decided: the answer was neither approve nor decline.")
HEADINGS: Final = {
    Status.WAITING: _("A call needs your answer"),
    Status.EXPIRED: _("Nobody answered this call in time"),
    Status.WITHDRAWN: _("This call was withdrawn"),
}
OTHERS: Final = _("This call waits for others")
# Where a page shows the time: on a card, on the line of a call in a transcript, in the list.
PLACES: Final = ("card", "line", "list")
# Whoever answered reads why it did not count.
DID_NOT_COUNT: Final = (
    decide.AlreadySettled,
    decide.OtherDigest,
    BadEdit,
    deciders.NotEntitled,
    deciders.AlreadyCounted,
    BadGrant,
    decide.BadReason,
)


@login_required
@require_safe
def approval(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    return _page(request, approval_for(request, approval_id))


@login_required
@require_POST
def answer(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Approve, with changed arguments or without, or decline. The fragment for htmx is the call as it stands now."""
    actor, sent, note = actor_of(request), request.POST, ""
    looked, grants = Looked(claimed(sent.get("opened"))), sent.getlist("grant")
    try:
        # One verdict and one digest: of two, nobody can say which was meant (SR-13).
        match sent.getlist("verdict"), sent.getlist("digest"), sent.getlist("edited"), sent.getlist("shown"):
            case ["approve"], [str(digest)], [], []:
                if len(grants) > 1:
                    raise BadGrant({"grant": "Expected one grant."})
                grant = scope.read(grants[0]) if grants else None
                decide.approve(approval_id, actor, digest=digest, grant=grant, looked=looked)
            case ["approve"], [str(digest)], [str(edited)], [str(shown)] if not grants:
                editing.approve(approval_id, actor, digest=digest, edited=edited, shown=shown, looked=looked)
            case ["decline"], _, _, _:
                decide.decline(approval_id, actor, reason=decide.checked_reason(sent.get("reason", "")), looked=looked)
            case _:
                note = str(NEITHER)
    except DID_NOT_COUNT as error:
        note = translatable(f"{error} Your answer was not recorded.")
    return _answered(request, approval_id, note)


@login_required
@require_POST
def reply(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Answer the question that a call asks. What does not fit comes back with its errors, and nothing is decided."""
    found = approval_for(request, approval_id)
    if not question.is_one(found.call):
        raise decide.NoSuchApproval(decide.NOT_YOURS)
    arguments = found.disclosure["arguments"]
    typed = [request.POST.getlist(name) for name in question.typed_names(arguments)]
    digest, looked = request.POST.get("digest", ""), Looked(claimed(request.POST.get("opened")))
    try:
        given = {question.ANSWER: read(question.fields(arguments), typed)}
        decide.approve(approval_id, actor_of(request), digest=digest, edited=given, looked=looked)
    except BadAnswer as error:
        return _form_again(request, found, question.asking_of(arguments, typed, error.errors))
    except DID_NOT_COUNT as error:
        return _replied(request, found, f"{error} Your answer was not recorded.")
    return _replied(request, found)


@login_required
@require_POST
def take_back(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    note = ""
    try:
        decide.take_back_approval(approval_id, actor_of(request))
    except decide.TooLate as error:
        note = str(error)
    return _answered(request, approval_id, note)


@login_required
@require_safe
def outcome(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Show the fragment again to a page that waits for the call to settle."""
    return _fragment(request, approval_for(request, approval_id))


@login_required
@require_safe
def who(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Show the fragment again once others have said yes or decided; 204 while it is as it was `seen`.

    With `alone` the part of a card that says who decides, for as long as it waits.
    """
    found = approval_for(request, approval_id)
    seen, alone = request.GET.get("seen", ""), "alone" in request.GET
    if found.call.status != Status.WAITING:
        return HttpResponse(status=204) if alone else _fragment(request, found)
    now = stance_of(found, actor_of(request))
    if now.mark == seen:
        return HttpResponse(status=204)
    if alone:
        return render(request, "approvals/_who.html", {"card": card(found, actor_of(request)), "oob": False})
    return _fragment(request, found, stays=now.stance == seen.partition(".")[0])


@login_required
@require_POST
def shown(request: HttpRequest) -> HttpResponse:
    """Note that the `items` are on the page, each an approval's id and its digest; 204 whatever comes of it.

    What the person may not see, or what is another question by now, is passed over, as is what makes no sense.
    """
    sent = (each.partition(":") for each in request.POST.getlist("items")[:MOST_TOGETHER])
    items = {pk: digest for named, _colon, digest in sent if (pk := uuid_of(named))}
    actor = actor_of(request)
    for found in deciders.seen_by(person(request).pk, items):
        if found.digest == items[found.pk]:
            attention.shown(found, actor)
    return HttpResponse(status=204)


@login_required
@require_safe
def left(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Show the time that is left; 204 if the page has it already (`was`), or if the question is over."""
    found = approval_for(request, approval_id)
    if moments.read(request.GET.get("was", "")) == found.call.deadline or found.call.status != Status.WAITING:
        return HttpResponse(status=204)
    return _left(request, found, request.GET.get("place", ""))


@login_required
@require_POST
def extend(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """Put the deadline off if this is the question's last minute; the time as it is then, and why if it was not."""
    note, seen = "", moments.read(request.POST.get("deadline", ""))
    try:
        if seen is None:
            note = gettext_noop("The page sent no valid deadline. Reload it.")
        else:
            editing.extend(approval_id, actor_of(request), seen=seen)
    except (decide.AlreadySettled, editing.NotNow) as error:
        note = str(error)
    if not request.htmx:
        return redirect("approval", approval_id)
    return _left(request, approval_for(request, approval_id), request.POST.get("place", ""), note)


def approval_for(request: HttpRequest, approval_id: UUID) -> Approval:
    """Return the approval if this person may see it, or the page that says there is none."""
    return get_object_or_404(deciders.seen_by(person(request).pk, [approval_id]), pk=approval_id)


def card_context(request: HttpRequest, found: Approval, note: str = "") -> dict[str, object]:
    """Return the context of _answered.html."""
    waiting = found.call.status == Status.WAITING
    shown = card(found, actor_of(request)) if waiting else None
    others = shown is not None and shown.who is not None and shown.who.stance != "may"
    decisions = list(found.decisions.select_related("person"))
    edited = [decision.edited_arguments for decision in decisions if decision.edited_arguments is not None]
    return {
        "approval": found,
        "call": found.call,
        "card": replace(shown, times=batch.times([found])[found.pk]) if shown else None,
        "was": None if waiting else as_shown(found),
        "changed": canonical.pretty(edited[-1], indent=2) if edited else "",
        "for_client": found.call.caller_kind == CallerKind.MCP,
        "moving": found.call.status in (Status.APPROVED, Status.EXECUTING),
        "note": note,
        "grants": [(each, scope.sentence(each, translated)) for each in found.grants.all()],
        "decisions": [
            (_decided(each, found), each.decided_at, attention.words(each, found.disclosure)) for each in decisions
        ],
        "heading": OTHERS if others else HEADINGS.get(Status(found.call.status), _("This call has been answered")),
    }


def _form_again(request: HtmxRequest, found: Approval, asks: Asking, note: str = "") -> HttpResponse:
    shown = replace(card(found, actor_of(request)), asks=asks)
    context = {"card": shown, "over": _over(request), "note": note}
    if request.htmx:
        return render(request, "approvals/_question_form.html", context)
    page = card_context(request, found) | {"card": shown, "section": "approvals", "whole": True}
    return render(request, "approvals/page.html", page, status=422)


def _replied(request: HtmxRequest, found: Approval, note: str = "") -> HttpResponse:
    """Show the call as it stands now in place of its card; a conversation's pages hear of it over their own socket."""
    if _over(request) == "ws":
        asks = question.asking_of(found.disclosure["arguments"])
        return _form_again(request, found, asks, note) if note else HttpResponse(status=204)
    answer = _answered(request, found.pk, note)
    return retarget(reswap(answer, "innerHTML"), "closest [data-card-slot]") if request.htmx else answer


def _over(request: HttpRequest) -> str:
    return "ws" if request.POST.get("over") == "ws" else "http"


def _answered(request: HtmxRequest, approval_id: UUID, note: str) -> HttpResponse:
    found = approval_for(request, approval_id)
    if request.htmx:
        return _fragment(request, found, note)
    return redirect("approval", approval_id) if not note else _page(request, found, note)


def _fragment(request: HtmxRequest, found: Approval, note: str = "", *, stays: bool = False) -> HttpResponse:
    """Return the card, for the Studio's page too, which has a heading of its own. `stays`: the page keeps the card."""
    shown_on = urlsplit(request.htmx.current_url or "").path
    on_its_page = shown_on == reverse("approval", args=[found.pk])
    context = card_context(request, found, note) | {"on_its_page": on_its_page, "whole": on_its_page, "who_anew": stays}
    return render(request, "approvals/_answered.html", context)


def _page(request: HttpRequest, found: Approval, note: str = "") -> HttpResponse:
    context = {"section": "approvals", "whole": True, **card_context(request, found, note)}
    return render(request, "approvals/page.html", context, status=409 if note else 200)


def _decided(decision: Decision, found: Approval) -> str:
    if decision.verdict != Verdict.APPROVE:
        sentence = gettext("Declined by {name}, {how}.")
    elif question.is_one(found.call):
        sentence = gettext("Answered by {name}, {how}.")
    else:
        sentence = gettext("Approved by {name}, {how}.")
    return sentence.format(name=decision.person.get_username(), how=translated(how(decision)))


def _left(request: HttpRequest, found: Approval, place: str, note: str = "") -> HttpResponse:
    context = {
        "id": found.pk,
        "key": key(found.pk, found.call.round),
        "deadline": found.call.deadline,
        "place": place if place in PLACES else PLACES[0],
        "note": note,
        "added": request.method == "POST" and not note,
    }
    return render(request, "approvals/_left.html", context)
