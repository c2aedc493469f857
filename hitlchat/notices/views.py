"""The page on which people say how they want to hear of what waits for them."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from hitlchat.accounts.administrators import administrators_only
from hitlchat.accounts.people import person
from hitlchat.gate.actor import actor_of
from hitlchat.gate.transition import note
from hitlchat.notices import addressing, changing, confirming, listing
from hitlchat.notices.audience import mail_is_off
from hitlchat.notices.changing import Refused
from hitlchat.notices.forms import AddressForm, WishesForm
from hitlchat.notices.models import Installation, Wishes

PAGE = "notices:page"


@login_required
@never_cache
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    return shown(request)


@login_required
@never_cache
@require_safe
def log(request: HttpRequest) -> HttpResponse:
    rows = listing.log(person(request))
    return render(request, "notices/_log.html", {"log": rows, "moving": listing.is_moving(rows)})


@login_required
@never_cache
@require_POST
def email(request: HttpRequest) -> HttpResponse:
    form = AddressForm(request.POST)
    if not form.is_valid():
        return shown(request, address_form=form)
    address = form.cleaned_data["address"]
    try:
        asks = confirming.ask_for(person(request), address, actor_of(request))
    except Refused as refused:
        return shown(request, address_form=form, problem=str(refused))
    known = confirming.address_of(person(request))
    if known is not None:
        known.tells_decided = "tells_decided" in request.POST
        known.save(update_fields=["tells_decided"])
    messages.success(request, f"A code was sent to {address}." if asks else f"Notices go to {address}.")
    return redirect(PAGE)


@login_required
@never_cache
@require_POST
def confirm(request: HttpRequest) -> HttpResponse:
    try:
        row = confirming.confirm(person(request), request.POST.get("code", "")[:40], actor_of(request))
    except Refused as refused:
        return shown(request, problem=str(refused))
    messages.success(request, f"Notices go to {row.place} from now on.")
    return redirect(PAGE)


@login_required
@never_cache
@require_POST
def email_off(request: HttpRequest) -> HttpResponse:
    row = confirming.address_of(person(request))
    if row is not None:
        changing.switch(row, actor_of(request), on=False)
        messages.success(request, "No more notices by e-mail.")
    Wishes.objects.filter(person=person(request)).update(pending="")
    return redirect(PAGE)


@login_required
@never_cache
@require_POST
def email_test(request: HttpRequest) -> HttpResponse:
    row = confirming.address_of(person(request))
    if row is None:
        return redirect(PAGE)
    try:
        changing.test(row, person(request), actor_of(request))
    except Refused as refused:
        return shown(request, problem=str(refused))
    return redirect(f"{reverse(PAGE)}#log")


@login_required
@never_cache
@require_POST
def wishes(request: HttpRequest) -> HttpResponse:
    user = person(request)
    row = Wishes.objects.filter(person=user).first() or Wishes(person=user)
    form = WishesForm(row, request.POST)
    if not form.is_valid():
        return shown(request, wishes_form=form)
    given: dict[str, Any] = form.cleaned_data
    Wishes.objects.update_or_create(person=user, defaults=given)
    hours = [f"{at:%H:%M}" if (at := given[name]) else None for name in ("quiet_from", "quiet_until")]
    data = {**given, "quiet_from": hours[0], "quiet_until": hours[1], "for": user.get_username()}
    note(None, "notice.wishes_changed", actor=actor_of(request), data=data)
    messages.success(request, "Saved.")
    return redirect(PAGE)


@administrators_only("Only administrators may say whether notices carry arguments.")
@require_POST
def arguments(request: HttpRequest) -> HttpResponse:
    allowed = request.POST.get("arguments") == "yes"
    changing.allow_arguments(actor_of(request), allowed=allowed)
    messages.success(
        request, f"Notices {'carry arguments, without secrets,' if allowed else 'carry no arguments'} from now on."
    )
    return redirect(PAGE)


def shown(
    request: HttpRequest,
    *,
    problem: str = "",
    address_form: AddressForm | None = None,
    wishes_form: WishesForm | None = None,
) -> HttpResponse:
    user = person(request)
    row = Wishes.objects.filter(person=user).first() or Wishes(person=user)
    address = confirming.address_of(user)
    own, common = listing.webhooks(user)
    rows = listing.log(user)
    context = {
        "section": "notices",
        "told": [str(each) for each in messages.get_messages(request)],
        "problem": problem,
        "wishes": row,
        "wishes_form": wishes_form or WishesForm(row),
        "address": address,
        "address_form": address_form or AddressForm(initial={"address": address.place if address else user.email}),
        "mail_is_off": mail_is_off(),
        "own": own,
        "common": common,
        "arguments": Installation.row().arguments,
        "knows_its_address": bool(addressing.own()),
        "unknown_address": addressing.UNKNOWN,
        "log": rows,
        "moving": listing.is_moving(rows),
        "collect": settings.NOTICE_COLLECT_SECONDS,
        "interval": settings.NOTICE_INTERVAL_SECONDS,
    }
    failed = problem or (address_form and address_form.errors) or (wishes_form and wishes_form.errors)
    return render(request, "notices/page.html", context, status=422 if failed else 200)
