"""Inviting people, and the page that an invited person comes in by."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role
from hitlchat.gate.actor import actor_of
from hitlchat.people import inviting
from hitlchat.people.forms import InvitationForm, JoinForm
from hitlchat.people.rules import Refused
from hitlchat.people.views import administrator_only


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def invite(request: HttpRequest) -> HttpResponse:
    """The link is in the answer to the POST that made it, only."""
    form = InvitationForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            role = Role(form.cleaned_data["role"])
            made, secret = inviting.invite(role, form.cleaned_data["note"], actor_of(request))
        except Refused as refused:
            form.add_error(None, str(refused))
        else:
            return render(request, "people/invited.html", {"made": made, "link": _link(request, secret)})
    context = {"section": "people", "form": form, "roles": [(each, roles.MEANING[each]) for each in Role]}
    return render(request, "people/invite.html", context, status=422 if form.errors else 200)


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, invitation_id: int) -> HttpResponse:
    found = inviting.still_open().filter(pk=invitation_id).first()
    if request.method != "POST":
        if found is None:
            raise Http404("This invitation is not open.")
        return render(request, "people/revoke_invitation.html", {"section": "people", "invitation": found})
    try:
        inviting.revoke(invitation_id, actor_of(request))
    except Refused as refused:
        messages.info(request, str(refused))
    else:
        messages.success(request, "The invitation is revoked: its link opens nothing any more.")
    return redirect("people:list")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Make the account and sign in; the link is used up by the POST, never by looking at it."""
    invitation = inviting.find(secret)
    if invitation is None:
        return render(request, "people/link_used.html", status=410)
    if request.user.is_authenticated:
        return render(request, "people/signed_in_already.html", status=409)
    form = JoinForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            user = inviting.redeem(secret, form.cleaned_data["username"], form.cleaned_data["password"])
        except Refused as refused:
            form.add_error(None, str(refused))
        else:
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
            return redirect("chat")
    role = Role(invitation.role)
    context = {"form": form, "invitation": invitation, "meaning": roles.MEANING[role]}
    return render(request, "people/join.html", context, status=422 if form.errors else 200)


def _link(request: HttpRequest, secret: str) -> str:
    scheme = "https" if settings.HTTPS else request.scheme
    return f"{scheme}://{request.get_host()}{reverse('people:join', args=[secret])}"
