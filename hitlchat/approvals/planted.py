"""Attention checks on pages: their announcement, each person's own results, totals, and a check where a card would be.

A check shares the addresses of approvals, so that it looks like one: these are asked first, and only what no approval
has is looked for among the checks of the person.
"""

from functools import wraps
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.accounts.access import HtmxRequest, View, administrators_only, person, signed_in
from hitlchat.accounts.roles import may_administer
from hitlchat.approvals import answering
from hitlchat.gate import planted
from hitlchat.gate.actor import actor_of
from hitlchat.gate.card import card
from hitlchat.gate.models import AttentionCheck
from hitlchat.gate.models.attention import MOST_DAYS
from hitlchat.gate.planted import BadAnnouncement

# Only a yes is one.
DECLINED: Final = {"approve": False, "decline": True, "suggest": True, "answer": True}
NO_EDIT: Final = gettext_noop("The arguments of this call cannot be changed here. Approve or decline it as it is.")
administrator_only = administrators_only("Only administrators may turn attention checks on or off.")


class AnnouncementForm(forms.Form):
    text = forms.CharField(
        label=gettext_noop("Announcement"),
        max_length=planted.LONGEST,
        widget=forms.Textarea({"rows": 4}),
        help_text=gettext_noop("Everybody reads it in the inbox, and gets no check before. Say why you do this."),
    )
    every_days = forms.IntegerField(
        label=gettext_noop("Days from one check of a person to the next, at least"),
        min_value=1,
        max_value=MOST_DAYS,
        initial=planted.USUAL_DAYS,
    )


@signed_in.reads
def page(request: HttpRequest) -> HttpResponse:
    return _page(request)


@administrator_only.posts
def announce(request: HttpRequest) -> HttpResponse:
    form = AnnouncementForm(request.POST, auto_id="announce_%s")
    if form.is_valid():
        try:
            planted.announce(form.cleaned_data["text"], form.cleaned_data["every_days"], actor_of(request))
        except BadAnnouncement as refused:
            for field, words in refused.errors.items():
                form.add_error(field, words)
        else:
            messages.success(request, _("Announced. Checks come only to people who have read it."))
            return redirect("attention-checks")
    return _page(request, form)


@administrator_only.posts
def end(request: HttpRequest) -> HttpResponse:
    planted.end(actor_of(request))
    messages.success(request, _("Attention checks are off."))
    return redirect("attention-checks")


@signed_in.posts
def read(request: HttpRequest, announcement_id: UUID) -> HttpResponse:
    planted.read(announcement_id, actor_of(request))
    return redirect("approvals")


def or_check(view: View) -> View:
    """Have a page of an approval answer for a check of the person, too, if there is no such approval."""

    @wraps(view)
    def found(request: HtmxRequest, approval_id: UUID) -> HttpResponseBase:
        try:
            return view(request, approval_id)
        except Http404:
            check = planted.one_of(request.user.pk or 0, approval_id)
            if check is None:
                raise
        if request.method == "POST" and "verdict" in request.POST:
            return _answer(request, check)
        match request.resolver_match and request.resolver_match.url_name:
            case "outcome" | "decide":
                return _card(request, check)
            case "edit-arguments" if check.is_open:
                shown = card(planted.as_question(check), actor_of(request))
                return render(request, "approvals/_edit.html", {"card": shown, "gone": _(NO_EDIT)})
            case _:
                # Its time runs out like any other, and nothing puts it off.
                return HttpResponse(status=204)

    return found


def _answer(request: HtmxRequest, check: AttentionCheck) -> HttpResponse:
    match request.POST.getlist("verdict"):
        case [str(verdict)] if verdict in DECLINED:
            was_open = check.is_open
            check = planted.answer(check.pk, actor_of(request), declined=DECLINED[verdict])
            if not request.htmx:
                return redirect("attention-checks")
            return render(request, "approvals/_check.html", {"check": check, "late": not was_open})
        case _:
            return _card(request, check, str(answering.NEITHER))


def _card(request: HtmxRequest, check: AttentionCheck, note: str = "") -> HttpResponse:
    if not check.is_open:
        return render(request, "approvals/_check.html", {"check": check, "late": True})
    context = answering.card_context(request, planted.as_question(check), note)
    return render(request, "approvals/_answered.html", context)


def _page(request: HttpRequest, form: AnnouncementForm | None = None) -> HttpResponse:
    user, announced = person(request), planted.current()
    context: dict[str, Any] = {"section": "approvals", "checks": planted.over(user.pk), "announced": announced}
    context["announcement"] = planted.unread_by(user.pk)
    if may_administer(user):
        given = {"text": announced.text, "every_days": announced.every_days} if announced else None
        context["form"] = form or AnnouncementForm(auto_id="announce_%s", initial=given)
        context |= {"totals": planted.totals(), "fewest": planted.FEWEST, "read_by": announced and announced.read_by}
    return render(request, "approvals/checks.html", context, status=422 if form else 200)
