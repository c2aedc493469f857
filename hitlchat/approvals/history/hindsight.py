"""The page on which people look back at calls that ran without asking."""

from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.accounts.access import person, signed_in
from hitlchat.accounts.roles import may_administer
from hitlchat.approvals.history import listing
from hitlchat.gate import hindsight
from hitlchat.gate.actor import actor_of
from hitlchat.gate.models import Hindsight

UNCLEAR: Final = gettext_noop("Nothing was recorded. Choose “Fine” or “Should have asked”.")


@signed_in.reads
def page(request: HttpRequest) -> HttpResponse:
    user = person(request)
    ids = hindsight.due(user.pk)
    lines = sorted(listing.lines(user, listing.rows().filter(pk__in=ids)), key=lambda line: ids.index(line["call"].pk))
    return render(request, "history/looking_back.html", {"section": "approvals", "lines": lines})


@signed_in.posts
def look_back(request: HttpRequest, call_id: UUID) -> HttpResponse:
    """Put the answer on record, and show what is left."""
    try:
        match request.POST.getlist("verdict"):
            case ["fine" | "should_ask" as verdict]:
                hindsight.look_back(call_id, actor_of(request), Hindsight.Verdict(verdict))
            case _:
                messages.error(request, _(UNCLEAR))
                return redirect("looking-back")
    except hindsight.SaidBefore as error:
        messages.error(request, _(str(error)))
    else:
        words = (
            _("Recorded: it should have been asked about.") if verdict == "should_ask" else _("Recorded: it was fine.")
        )
        may_change = verdict == "should_ask" and may_administer(person(request))
        hint = _("In the policy lab you can see what asking about this tool would change.")
        messages.success(request, f"{words} {hint}" if may_change else words)
    return redirect("looking-back")
