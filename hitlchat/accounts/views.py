"""The first administrator, and the theme of a browser."""

from typing import Any, Final

from django import forms
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from hitlchat.accounts import sign_in


class FirstAdministratorForm(forms.ModelForm):  # type: ignore[type-arg]
    password = forms.CharField(
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}), help_text="At least 10 characters."
    )

    class Meta:
        model = User
        fields = ["username"]
        help_texts = {"username": "How you sign in, and how approvals name you."}
        widgets = {"username": forms.TextInput(attrs={"autocomplete": "username", "autofocus": True})}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if password := cleaned.get("password"):
            try:
                validate_password(password, User(username=cleaned.get("username", "")))
            except ValidationError as error:
                self.add_error("password", error)
        return cleaned


def welcome(request: HttpRequest, secret: str) -> HttpResponse:
    """Make the first administrator and sign them in; the link is used up by the POST, never by looking at it."""
    if not sign_in.is_open(secret):
        return render(request, "accounts/link_used.html", {"needed": sign_in.needed()}, status=410)
    form = FirstAdministratorForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = sign_in.redeem(secret, form.cleaned_data["username"], form.cleaned_data["password"])
        except sign_in.LinkUsed as used:
            form.add_error(None, str(used))
        else:
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
            return redirect("chat")
    return render(request, "accounts/welcome.html", {"form": form})


THEME: Final = "hitlchat_theme"
THEMES: Final = {"system": "As the system has it", "light": "Light", "dark": "Dark"}
A_YEAR: Final = 365 * 86400


def theme(request: HttpRequest) -> str:
    """Return the theme that this browser is to show: `light`, `dark`, or empty for that of the system."""
    chosen = request.COOKIES.get(THEME, "")
    return chosen if chosen in ("light", "dark") else ""


@login_required
@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Keep the theme for this browser."""
    chosen = request.POST.get("theme", "")
    if chosen not in THEMES:
        return HttpResponseBadRequest("theme: expected system, light or dark.", content_type="text/plain")
    response = redirect("people:account")
    response.set_cookie(THEME, chosen, max_age=A_YEAR, secure=request.is_secure(), httponly=True, samesite="Lax")
    return response
