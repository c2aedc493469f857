"""Adding a webhook, trying it, and what else is done with one."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from hitlchat.accounts.people import person
from hitlchat.gate.actor import actor_of
from hitlchat.notices import changing
from hitlchat.notices.changing import Refused
from hitlchat.notices.forms import WebhookForm
from hitlchat.notices.models import Kind, Receiver
from hitlchat.notices.views import PAGE, shown


@sensitive_post_parameters("url")
@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    form = WebhookForm(person(request), request.POST if request.method == "POST" else None)
    if form.is_valid():
        receiver = form.receiver
        try:
            secret = changing.add(receiver, form.cleaned_data["url"], actor_of(request))
        except Refused as refused:
            form.add_error(None, str(refused))
        else:
            return _made(request, receiver, secret)
    context = {"section": "notices", "form": form}
    return render(request, "notices/new.html", context, status=422 if form.errors else 200)


@login_required
@never_cache
@require_POST
def test(request: HttpRequest, receiver_id: UUID) -> HttpResponse:
    try:
        changing.test(_theirs(request, receiver_id), person(request), actor_of(request))
    except Refused as refused:
        return shown(request, problem=str(refused))
    return redirect(f"{reverse(PAGE)}#log")


@login_required
@never_cache
@require_POST
def switch(request: HttpRequest, receiver_id: UUID) -> HttpResponse:
    receiver, on = _theirs(request, receiver_id), request.POST.get("on") == "yes"
    changing.switch(receiver, actor_of(request), on=on)
    messages.success(request, f"{receiver.name} is {'on' if on else 'off'}.")
    return redirect(PAGE)


@login_required
@never_cache
@require_POST
def key(request: HttpRequest, receiver_id: UUID) -> HttpResponse:
    receiver = _theirs(request, receiver_id)
    try:
        secret = changing.new_key(receiver, actor_of(request))
    except Refused as refused:
        return shown(request, problem=str(refused))
    return _made(request, receiver, secret, again=True)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, receiver_id: UUID) -> HttpResponse:
    """GET says what would follow, POST does it."""
    receiver = _theirs(request, receiver_id)
    if request.method != "POST":
        return render(request, "notices/remove.html", {"section": "notices", "receiver": receiver})
    changing.remove(receiver, actor_of(request))
    messages.success(request, f"{receiver.name} is removed.")
    return redirect(PAGE)


def _made(request: HttpRequest, receiver: Receiver, secret: str, *, again: bool = False) -> HttpResponse:
    context = {"section": "notices", "receiver": receiver, "secret": secret, "again": again}
    return render(request, "notices/made.html", context)


def _theirs(request: HttpRequest, receiver_id: UUID) -> Receiver:
    """A webhook of theirs to manage; of others it looks as if there were none."""
    rows = changing.manageable(person(request)).exclude(kind=Kind.EMAIL)
    return get_object_or_404(rows, pk=receiver_id)
