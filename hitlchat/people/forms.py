from typing import Any

from django import forms
from django.core.validators import ProhibitNullCharactersValidator

from hitlchat.accounts.models import Role
from hitlchat.accounts.views import FirstAdministratorForm
from hitlchat.people import inviting
from hitlchat.people.grouping import LONGEST_NAME
from hitlchat.people.inviting import is_plain


class InvitationForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices, initial=Role.MEMBER, widget=forms.RadioSelect)
    note = forms.CharField(
        label="For whom",
        max_length=120,
        required=False,
        help_text="A name or an e-mail address, so that you know later whom it was for. Nothing is sent.",
    )


class JoinForm(FirstAdministratorForm):
    def clean_username(self) -> str:
        name = str(self.cleaned_data["username"])
        if not is_plain(name):
            raise forms.ValidationError("It has characters that cannot be seen, or that look like others.")
        if inviting.name_is_taken(name):
            raise forms.ValidationError("Somebody here has this name already.")
        return name


class GroupForm(forms.Form):
    name = forms.CharField(max_length=LONGEST_NAME)


class Search(forms.Form):
    """Filters of the list of people; what does not fit narrows nothing."""

    q = forms.CharField(required=False, max_length=150, validators=[ProhibitNullCharactersValidator()])
    role = forms.ChoiceField(required=False, choices=[("", "Any role"), *Role.choices])
    state = forms.ChoiceField(
        required=False, choices=[("", "Active or not"), ("active", "Active"), ("deactivated", "Deactivated")]
    )

    @property
    def wanted(self) -> dict[str, Any]:
        self.is_valid()
        return {name: self.cleaned_data.get(name) or "" for name in self.fields}
