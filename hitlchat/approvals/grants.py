"""Giving a grant on a card, with its scope in words before the click; and the page of the grants."""

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from hitlchat.accounts.access import person, signed_in
from hitlchat.accounts.roles import may_administer
from hitlchat.approvals.answering import approval_for, over
from hitlchat.base.sentences import translated
from hitlchat.gate.actor import Actor, actor_of
from hitlchat.gate.card import card
from hitlchat.gate.decide import AlreadySettled
from hitlchat.gate.grants import giving
from hitlchat.gate.grants.scope import BadGrant, Scope, ended_how, offer, sentence, used
from hitlchat.gate.models import Approval, Grant
from hitlchat.gate.status import Status

COUNTS: Final = [
    ("", _("Any number")),
    ("1", _("The next call")),
    *((str(n), format_lazy(_("The next {many} calls"), many=n)) for n in (2, 3, 5, 10, 25, 50, 100)),
]
TIMES: Final = [
    ("", _("No limit")),
    ("15", _("15 minutes")),
    ("60", _("1 hour")),
    ("240", _("4 hours")),
    ("1440", _("24 hours")),
]
# What the form begins with: narrow, and enough for the next few calls.
CALLS: Final = 5
MINUTES: Final = 60


@signed_in.reads
def form(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Show the form, or (`part=offer`) its present state in words. Nothing is kept or decided here."""
    found, actor = approval_for(request, approval_id), actor_of(request)
    here = found.call.conversation_id is not None
    context: dict[str, Any] = {"card": card(found, actor), "over": over(request.GET)}
    if request.GET.get("part") == "offer":
        return render(request, "grants/_offer.html", context | _typed(found, actor, request.GET))
    is_open = found.call.status == Status.WAITING
    gone = giving.why_not(found, actor) if is_open else str(AlreadySettled(found.call))
    context |= {"gone": gone, "has_conversation": here, "counts": COUNTS, "times": TIMES}
    context |= {"chosen": {"calls": str(CALLS), "minutes": str(MINUTES), "this_conversation": here}}
    chosen = Scope(calls=CALLS, minutes=MINUTES, this_conversation=here)
    return render(request, "grants/_form.html", context | _offer(found, actor, chosen))


@signed_in.reads
def page(request: HttpRequest) -> HttpResponse:
    """Show one's own grants, or those of everyone to administrators."""
    user = person(request)
    rows = giving.seen_by(user)
    context = {
        "section": "approvals",
        "sees_all": may_administer(user),
        "active": _rows(giving.active(rows), is_active=True),
        "ended": _rows(giving.ended(rows)[: giving.MOST_ENDED], is_active=False),
    }
    return render(request, "grants/page.html", context)


@signed_in.posts
def revoke(request: HttpRequest, grant_id: UUID) -> HttpResponse:
    ended = giving.revoke(grant_id, actor_of(request))
    messages.success(request, ended_how(ended, gettext))
    return redirect("earned-rules" if ended.is_earned else "grants")


def _typed(found: Approval, actor: Actor, typed: QueryDict) -> dict[str, Any]:
    try:
        calls, minutes = (int(str(typed[name])) if typed.get(name) else None for name in ("calls", "minutes"))
    except ValueError:
        return {"problems": [_("Expected whole numbers.")]}
    same, here = (typed.get(name) == "on" for name in ("sameArguments", "thisConversation"))
    condition = str(typed.get("condition", "")).replace("\r\n", "\n")
    return _offer(found, actor, Scope(same, here, calls, minutes, None, condition))


def _offer(found: Approval, actor: Actor, scope: Scope) -> dict[str, Any]:
    """Return the sentence and what it stands for, or what is wrong."""
    try:
        exactly = giving.meant(found, scope, actor, found.call.arguments)
    except BadGrant as error:
        return {"problems": [*error.errors.values()]}
    return {"offer": offer(found.call.tool_name, exactly, translated), "until": exactly.until, "scope": exactly.as_json}


def _rows(grants: QuerySet[Grant], *, is_active: bool) -> list[dict[str, Any]]:
    return [
        {
            "grant": each,
            "sentence": sentence(each, translated),
            "used": used(each, gettext),
            "state": giving.STATES[giving.state(each, is_active=is_active)],
        }
        for each in grants
    ]
