"""The form with which a person says who decides for them while they are away, and what a page shows of it."""

from typing import Any, Final
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy, gettext_noop

from hitlchat.gate import absences
from hitlchat.gate.absences import BadAbsence
from hitlchat.gate.actor import Actor

# As browsers send and take it.
MOMENT: Final = "%Y-%m-%dT%H:%M"


def _moment(**given: Any) -> forms.DateTimeField:
    return forms.DateTimeField(widget=forms.DateTimeInput({"type": "datetime-local"}, format=MOMENT), **given)


class AbsenceForm(forms.Form):
    """Its moments are in the zone that is sent with them."""

    delegate: "forms.ModelChoiceField[User]" = forms.ModelChoiceField(
        label="Who decides meanwhile",
        queryset=User.objects.none(),
        to_field_name="username",
        empty_label=gettext_lazy("Choose a person"),
    )
    since = _moment(label=gettext_noop("From"), required=False, help_text=gettext_noop("Empty: from now on."))
    until = _moment(label=gettext_noop("Until"))
    time_zone = forms.ChoiceField(
        label="Time zone",
        choices=lambda: [(name, name) for name in sorted(available_timezones() | {settings.TIME_ZONE})],
        initial=settings.TIME_ZONE,
    )

    def __init__(self, person: User, actor: Actor, data: Any = None) -> None:
        super().__init__(data, auto_id="away_%s")
        self.person, self.actor = person, actor
        others = User.objects.filter(is_active=True).exclude(pk__in=[person.pk, actor.user_id])
        self.fields["delegate"].queryset = others.order_by("username")  # type: ignore[attr-defined]
        if data is None:
            self.fields["time_zone"].widget.attrs["data-browser-zone"] = ""

    def save(self) -> bool:
        """Return whether it was made; if not, the form says at its fields why."""
        zone = self.data.get("time_zone", "")
        with timezone.override(zone if zone in available_timezones() else settings.TIME_ZONE):
            if not self.is_valid():
                return False
        given = self.cleaned_data
        name = given["delegate"].get_username()
        try:
            absences.begin(self.person.pk, name, given["since"], given["until"], self.actor)
        except BadAbsence as refused:
            for field, words in refused.errors.items():
                self.add_error(field, words)
        return not self.errors


def shown(person: User, actor: Actor, form: AbsenceForm | None = None) -> dict[str, Any]:
    """Return the context of _away.html."""
    return {
        "away_form": form or AbsenceForm(person, actor),
        "away": absences.open_ones(person=person),
        "stands_in": absences.open_ones(delegate=person),
        "away_of": person,
    }
