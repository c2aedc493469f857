"""Signing in, and the first administrator."""

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from hitlchat.accounts import first_run
from hitlchat.accounts.forms import FirstAdministratorForm


@never_cache
def welcome(request: HttpRequest, secret: str) -> HttpResponse:
    """Make the first administrator and sign them in; the link is used up by the POST, never by looking at it."""
    if not first_run.is_open(secret):
        return render(request, "accounts/link_used.html", {"needed": first_run.needed()}, status=410)
    form = FirstAdministratorForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = first_run.redeem(secret, form.cleaned_data["username"], form.cleaned_data["password"])
        except first_run.LinkUsed as used:
            form.add_error(None, str(used))
        else:
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
            return redirect("chat")
    return render(request, "accounts/welcome.html", {"form": form})
