from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError


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
