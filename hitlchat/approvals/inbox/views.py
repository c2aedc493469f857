"""The inbox: everything that waits for a person, several calls answered together, and recent decisions."""

from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_safe

from hitlchat.accounts.access import person, signed_in
from hitlchat.approvals import answering
from hitlchat.approvals.inbox import lines
from hitlchat.base.ids import uuid_of
from hitlchat.base.moments import span
from hitlchat.base.sentences import translated
from hitlchat.gate import absences, batch, decide, deciders, hindsight, planted
from hitlchat.gate.actor import actor_of
from hitlchat.gate.attention import claimed
from hitlchat.gate.batch import Item
from hitlchat.gate.card import card
from hitlchat.gate.models import Approval, ToolCall, Verdict
from hitlchat.gate.status import Status
from hitlchat.gate.who import name

MOST: Final = 5
# Looked for among so many: the last of this person's own, and of everyone's. More is for the history to find.
LOOKED_AT: Final = 50
UNCLEAR: Final = gettext_noop("Nothing was decided: the page sent no valid answer. Select the calls again.")
# Answered with yes, and not over.
MOVING: Final = frozenset({Status.APPROVED, Status.EXECUTING})


@signed_in.reads
def page(request: HttpRequest) -> HttpResponse:
    """Show the inbox, with the card of the call that is chosen (`call`), else of the most urgent one."""
    user = person(request)
    announcement = planted.arrive(user)
    shown = lines.filter_of(request.GET, user.pk)
    listed = lines.of(user.pk, shown)
    # An id that is none, or of a call that the person may not see, is passed over.
    wanted = uuid_of(request.GET.get("call", ""))
    picked = _of_card(listed, user.pk, wanted) if wanted else None
    chosen = picked
    if picked is None and listed.lines:
        chosen = _of_card(listed, user.pk, listed.lines[0].approval.pk)
    context = {"section": "approvals", "filter": shown, "listed": listed, **_lately(user.pk)}
    context |= {"picked": picked is not None, "chosen": chosen, "approvals_waiting": listed.waiting}
    context["looking_back"] = len(hindsight.due(user.pk))
    context["announcement"] = announcement
    context["away"] = absences.open_ones(person=user)
    if chosen:
        context |= answering.card_context(request, chosen)
    return render(request, "approvals/inbox/page.html", context)


@signed_in.reads
def live(request: HttpRequest) -> HttpResponse:
    """Show the list and recent decisions; 204 if the page has them already (`was`)."""
    user = person(request)
    shown = lines.filter_of(request.GET, user.pk, narrow=True)
    listed = lines.of(user.pk, shown)
    if request.GET.get("was") == listed.mark:
        return HttpResponse(status=204)
    context = {"filter": shown, "listed": listed, "anew": True, **_lately(user.pk)}
    return render(request, "approvals/inbox/_live.html", context)


@signed_in.reads
def decided(request: HttpRequest) -> HttpResponse:
    """Return the list of late decisions alone: an approved call goes on after its answer."""
    return render(request, "approvals/inbox/_lately.html", _lately(person(request).pk))


@require_safe
def count(request: HttpRequest) -> HttpResponse:
    """Return how many wait, as it is shown; nothing (204) for whoever is not signed in."""
    user = request.user
    if user.pk is None or not user.is_authenticated:
        return HttpResponse(status=204)
    return HttpResponse(str(lines.count_waiting(user.pk)), content_type="text/plain")


@signed_in.form
def together(request: HttpRequest) -> HttpResponse:
    """GET: the list of the calls (`call`) and of no others, with the buttons. POST: the outcome of each answer."""
    context = _answered(request) if request.method == "POST" else _listed(request)
    return render(request, "approvals/inbox/_together.html", context)


def _of_card(listed: lines.Listed, user_id: int, wanted: UUID) -> Approval | None:
    """Return what is shown as a card: an approval, or the check of the list."""
    checks = (line.approval for line in listed.lines if line.is_check and line.approval.pk == wanted)
    return next(checks, None) or deciders.one_seen_by(user_id, wanted)


def _listed(request: HttpRequest) -> dict[str, Any]:
    actor = actor_of(request)
    wanted = {*filter(None, map(uuid_of, request.GET.getlist("call")[: batch.MOST_TOGETHER]))}
    # The most urgent first, as they are listed.
    seen = deciders.seen_by(person(request).pk, wanted).order_by("call__deadline", "call__created_at", "pk")
    rows = [row for row in seen if row.call.status == Status.WAITING]
    groups = batch.groups(rows, [card(row, actor) for row in rows])
    gone = len(wanted) - len(rows)
    if len(groups) == 1 and len(groups[0].cards) == len(rows):
        return {"group": groups[0], "gone": gone}
    if len(rows) < 2 and gone:
        return {"note": _("The other calls no longer wait. Answer the remaining one individually.")}
    words = _("These calls cannot be answered together: only calls to one tool below L{level} can.")
    return {"note": words.format(level=batch.TOO_RISKY)}


def _answered(request: HttpRequest) -> dict[str, Any]:
    # Each is `ID:DIGEST`, both as the list had them.
    sent = [each.partition(":") for each in request.POST.getlist("items")]
    items = [Item(found, digest) for named, _colon, digest in sent if (found := uuid_of(named)) and digest]
    opened = claimed(request.POST.get("opened"))
    match request.POST.getlist("verdict"):
        case ["approve" | "decline" as verdict] if len(items) == len(sent):
            pass
        case _:
            return {"note": _(UNCLEAR)}
    try:
        outcomes = batch.answer(items, verdict, actor_of(request), opened=opened, on_page=True)
    except (batch.NotTogether, decide.NoSuchApproval, deciders.NotEntitled) as error:
        return {"note": str(error)}
    counted = [each.approval for each in outcomes if each.counted and verdict == "approve"]
    shown = Approval.objects.filter(pk__in=counted).values_list("disclosure", flat=True)
    return {
        "outcomes": outcomes,
        "all_counted": all(outcome.counted for outcome in outcomes),
        # One may be of what another call changes.
        "may_ask_again": len(counted) > 1 and any(each.get("preview") for each in shown),
    }


def _lately(user_id: int) -> dict[str, object]:
    """Return the context of _lately.html: the calls that ended last, the latest first."""
    # By the indexes for what somebody asked last, and for what was settled last.
    calls = ToolCall.objects.filter(approval__isnull=False)
    own = calls.filter(caller_id=user_id).exclude(status=Status.WAITING).order_by("-created_at")
    settled = calls.filter(settled_at__isnull=False).order_by("-settled_at")
    ids = {pk for rows in (own, settled) for pk in rows.values_list("approval", flat=True)[:LOOKED_AT]}
    approvals = deciders.seen_by(user_id, ids).exclude(call__status=Status.WAITING)
    approvals = approvals.defer("disclosure", "call__arguments", "call__result", "call__output")
    found: list[dict[str, Any]] = []
    for row in approvals.prefetch_related("decisions__person"):
        answers = list(row.decisions.all())
        if row.call.status in (Status.DECLINED, Status.ANSWERED, Status.EXPIRED, Status.WITHDRAWN):
            # Who had said yes before somebody declined did not decide it.
            answers = [each for each in answers if each.verdict != Verdict.APPROVE]
        at = answers[-1].decided_at if answers else row.call.settled_at
        # The time from the question to the answer, in words.
        took = span((at - row.created_at).total_seconds()) if at else ""
        who = [translated(name(each)) for each in answers]
        found.append({"approval": row, "who": who, "at": at or row.created_at, "took": took})
    latest = sorted(found, key=lambda each: each["at"], reverse=True)[:MOST]
    return {"lately": latest, "goes_on": any(each["approval"].call.status in MOVING for each in latest)}
