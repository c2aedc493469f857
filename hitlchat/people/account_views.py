"""What everyone sees of themselves; and what someone is told whose account was deactivated."""

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from hitlchat.accounts import roles
from hitlchat.accounts.people import person
from hitlchat.gate.actor import actor_of
from hitlchat.gate.transition import note
from hitlchat.people.access import told


@sensitive_post_parameters()
@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """One's own role, and a new password."""
    user = person(request)
    form = PasswordChangeForm(user, request.POST if request.method == "POST" else None)
    form.fields["old_password"].widget.attrs.pop("autofocus", None)
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, user)
        about = {"person": user.get_username(), "person_id": user.pk}
        note(None, "person.password_changed", actor=actor_of(request), data=about)
        messages.success(request, "Your password is changed. You are signed out everywhere else.")
        return redirect("people:account")
    role = roles.role_of(user)
    context = {
        "section": "account",
        "form": form,
        "role": role,
        "meaning": roles.MEANING[role],
        "groups": user.groups.filter(pk__in=roles.named_groups()),
        "told": told(request),
    }
    return render(request, "people/account.html", context, status=422 if form.errors else 200)


@never_cache
@require_safe
def deactivated(request: HttpRequest) -> HttpResponse:
    """Where open pages go whose person was deactivated."""
    if request.user.is_authenticated:
        return redirect("chat")
    return render(request, "people/deactivated.html")
