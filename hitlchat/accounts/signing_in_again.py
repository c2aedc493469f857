"""Giving one's password once more: some decisions count only shortly after that."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.access import person
from hitlchat.accounts.sessions import note_sign_in

FIELD = forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True})


class SignInAgain(forms.Form):
    password = forms.CharField(strip=False, widget=FIELD)

    def __init__(self, request: HttpRequest, data: Any = None) -> None:
        super().__init__(data)
        self.request, self.user = request, person(request)

    def clean_password(self) -> str:
        given: str = self.cleaned_data["password"]
        found = authenticate(self.request, username=self.user.get_username(), password=given)
        if not isinstance(found, User) or found.pk != self.user.pk:
            raise ValidationError("This is not your password.")
        return given


@sensitive_post_parameters()
@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def again(request: HttpRequest) -> HttpResponse:
    """Goes on to `next`, which is an address of this server or else the start."""
    form = SignInAgain(request, request.POST if request.method == "POST" else None)
    onward = request.POST.get("next") or request.GET.get("next", "")
    if form.is_valid():
        # Whoever had the session's key before has it no longer.
        request.session.cycle_key()
        note_sign_in(request=request)
        return redirect(_here(request, onward))
    context = {"form": form, "next": onward}
    return render(request, "accounts/sign_in_again.html", context, status=422 if form.errors else 200)


def _here(request: HttpRequest, address: str) -> str:
    is_here = url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
    return address if is_here else resolve_url("chat")
