"""Several calls of one tool answered together: first each is listed as it will be answered, then the answer."""

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.people import person
from hitlchat.gate import batch, decide, deciders
from hitlchat.gate.actor import actor_of
from hitlchat.gate.attention import claimed
from hitlchat.gate.batch import Item
from hitlchat.gate.card import card
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status

UNCLEAR = "Nothing was decided: the page sent no clear answer. Select the calls again."


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def together(request: HttpRequest) -> HttpResponse:
    """GET: the list of the calls (`call`) and of no others, with the buttons. POST: what came of each answer."""
    context = _answered(request) if request.method == "POST" else _listed(request)
    return render(request, "approvals/inbox/_together.html", context)


def _listed(request: HttpRequest) -> dict[str, Any]:
    actor = actor_of(request)
    wanted = [found for each in request.GET.getlist("call")[: batch.MOST_TOGETHER] if (found := _id(each))]
    rows = [row for row in _rows(request, wanted) if row.call.status == Status.WAITING]
    groups = batch.groups(rows, [card(row, actor) for row in rows])
    gone = len(set(wanted)) - len(rows)
    if len(groups) != 1 or len(groups[0].cards) != len(rows):
        return {"note": _why_not(rows, gone)}
    return {"group": groups[0], "gone": gone}


def _rows(request: HttpRequest, wanted: list[UUID]) -> list[Approval]:
    """The most urgent first, as they are listed."""
    return list(deciders.seen_by(person(request).pk, wanted).order_by("call__deadline", "call__created_at", "pk"))


def _why_not(rows: list[Approval], gone: int) -> str:
    if len(rows) < 2 and gone:
        return "The others of these calls no longer wait. Answer what is left by itself."
    return f"These calls cannot be answered together: only calls of one tool below L{batch.TOO_RISKY} can."


def _answered(request: HttpRequest) -> dict[str, Any]:
    match request.POST.getlist("verdict"), [_item(each) for each in request.POST.getlist("items")]:
        case ["approve" | "decline" as verdict], [*items] if None not in items:
            return _told(request, [each for each in items if each], verdict)
        case _:
            return {"note": UNCLEAR}


def _told(request: HttpRequest, items: list[Item], verdict: batch.Answer) -> dict[str, Any]:
    try:
        outcomes = batch.answer(items, verdict, actor_of(request), opened=claimed(request.POST.get("opened")))
    except (batch.NotTogether, decide.NoSuchApproval, deciders.NotEntitled) as error:
        return {"note": str(error)}
    return {"outcomes": outcomes, "all_counted": all(outcome.counted for outcome in outcomes)}


def _item(sent: str) -> Item | None:
    """`ID:DIGEST`, both as the list had them."""
    named, _, digest = sent.partition(":")
    found = _id(named)
    return Item(found, digest) if found and digest else None


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
