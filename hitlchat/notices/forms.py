"""What people fill in about notices."""

import re
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth.models import Group, User

from hitlchat.accounts.roles import may_administer, named_groups
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import NAME_PATTERN
from hitlchat.notices.changing import LONGEST_URL, Refused, place_in
from hitlchat.notices.models import Kind, Receiver, Wishes

LEVELS = [(level, f"L{level} {label}" + (" and above" if level < 5 else "")) for level, label in enumerate(RISK_LABELS)]
MOST_TOOLS = 100
MINE, EVERYONE = "me", "installation"


class AddressForm(forms.Form):
    address = forms.EmailField(
        label="Address", max_length=254, help_text="A code is sent there first; it becomes the address of your account."
    )


class WishesForm(forms.Form):
    """For one's own e-mail and webhooks."""

    least_risk = forms.TypedChoiceField(label="From which risk on", choices=LEVELS, coerce=int)
    tools = forms.CharField(
        label="Only these tools",
        required=False,
        max_length=6000,
        widget=forms.TextInput,
        help_text="Names with commas between; empty: all.",
    )
    quiet_from = forms.TimeField(
        label="Quiet from", required=False, widget=forms.TimeInput({"type": "time"}, format="%H:%M")
    )
    quiet_until = forms.TimeField(
        label="Quiet until", required=False, widget=forms.TimeInput({"type": "time"}, format="%H:%M")
    )
    time_zone = forms.ChoiceField(label="Time zone")

    def __init__(self, wishes: Wishes, data: Any = None) -> None:
        names = ("least_risk", "quiet_from", "quiet_until")
        initial: dict[str, Any] = {name: getattr(wishes, name) for name in names}
        initial |= {"tools": ", ".join(wishes.tools), "time_zone": wishes.time_zone or settings.TIME_ZONE}
        super().__init__(data, initial=initial)
        zones = self.fields["time_zone"]
        assert isinstance(zones, forms.ChoiceField)
        zones.choices = [(name, name) for name in sorted(available_timezones() | {settings.TIME_ZONE})]

    def clean_tools(self) -> list[str]:
        names = list(dict.fromkeys(name.strip() for name in self.cleaned_data["tools"].split(",") if name.strip()))
        if len(names) > MOST_TOOLS or not all(re.fullmatch(NAME_PATTERN, name) for name in names):
            raise forms.ValidationError(f"At most {MOST_TOOLS} names of tools, such as refund_order, send_email.")
        return names

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        begins, ends = given.get("quiet_from"), given.get("quiet_until")
        if (begins is None) != (ends is None):
            self.add_error("quiet_until" if ends is None else "quiet_from", "Quiet hours have a beginning and an end.")
        elif begins is not None and begins == ends:
            self.add_error("quiet_until", "They end when they begin: leave both empty for none, or turn notices off.")
        return given


class WebhookForm(forms.Form):
    name = forms.CharField(max_length=60, help_text="How you recognise it, such as “on-call channel”.")
    url = forms.CharField(
        label="Address",
        max_length=LONGEST_URL,
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "inputmode": "url"}),
        help_text="Beginning with https://. It is kept sealed, and only its host is shown again.",
    )
    kind = forms.ChoiceField(
        label="Format",
        choices=[
            (Kind.WEBHOOK, "Signed JSON (Standard Webhooks)"),
            (Kind.SLACK, "Slack, and what reads its format"),
        ],
    )
    whose = forms.ChoiceField(label="For")
    least_risk = forms.TypedChoiceField(label="From which risk on", choices=LEVELS, coerce=int, initial=0)
    tells_decided = forms.BooleanField(
        label="Tell also when a call has been decided or expired", required=False, initial=True
    )
    allow_private = forms.BooleanField(
        label="It is on this machine or a private network",
        required=False,
        help_text="Lets this webhook go to a private address, also without https.",
    )

    def __init__(self, person: User, data: Any = None) -> None:
        super().__init__(data)
        self._person = person
        whose = self.fields["whose"]
        assert isinstance(whose, forms.ChoiceField)
        whose.choices = [(MINE, "Me: what I may decide")]
        if may_administer(person):
            groups = [(f"group-{group.pk}", f"Group {group.name}") for group in named_groups()]
            whose.choices = [*whose.choices, (EVERYONE, "The installation: every call that waits"), *groups]
        if not (may_administer(person) and settings.NOTICE_ALLOW_PRIVATE):
            del self.fields["allow_private"]

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if "url" in given:
            try:
                place_in(given["url"], allow_private=given.get("allow_private", False))
            except Refused as refused:
                self.add_error("url", str(refused))
        return given

    @property
    def receiver(self) -> Receiver:
        """As it was filled in; not stored, and without its address."""
        given = self.cleaned_data
        whose = given["whose"]
        group = Group.objects.get(pk=whose.removeprefix("group-")) if whose.startswith("group-") else None
        return Receiver(
            kind=given["kind"],
            person=self._person if whose == MINE else None,
            group=group,
            name=given["name"],
            allow_private=given.get("allow_private", False),
            tells_decided=given["tells_decided"],
            least_risk=given["least_risk"],
        )
