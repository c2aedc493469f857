"""Signing in, signing in once more, and the first administrator."""

from typing import Any

from django import forms
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

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
