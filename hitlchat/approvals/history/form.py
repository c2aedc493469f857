"""The form of the filters: its fields are those of the query string, its answer is what the gate looks for."""

from collections.abc import Iterable, Mapping
from datetime import datetime, time, timedelta
from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from hitlchat.base.canonical import storable
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.history.finding import MEANS, Wanted
from hitlchat.gate.history.row import CHOICES
from hitlchat.gate.models import CallerKind

SOURCES: Final = (("studio", "Tool Studio"), ("upstream", "Upstream server"), ("project", "Your project"))
LONGEST: Final = 150
# Those that stand behind a fold, unless one of them is set.
MORE: Final = ("source", "caller", "person", "decider", "means", "risk", "rule", "hurried")


class Moment(forms.Field):
    """A day of the server's time zone, or a moment in ISO 8601. Of a day its beginning, or with `whole` its end."""

    widget = forms.DateInput(attrs={"type": "date"})

    def __init__(self, *, whole: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self._whole = whole

    def to_python(self, value: object) -> datetime | None:
        text = str(value or "").strip()
        if not text:
            return None
        try:
            return self._day(text) or self._moment(text)
        except (ValueError, OverflowError):
            raise forms.ValidationError(EXPECTED_MOMENT) from None

    def _day(self, text: str) -> datetime | None:
        day = parse_date(text) if "T" not in text else None
        if day is None:
            return None
        return timezone.make_aware(datetime.combine(day + timedelta(days=self._whole), time()))

    @staticmethod
    def _moment(text: str) -> datetime:
        found = parse_datetime(text)
        if found is None or found.tzinfo is None:
            raise ValueError(text)
        return found


EXPECTED_MOMENT: Final = "Expected a day such as 2026-11-22, or a moment with its time zone."


def _one_of(choices: Iterable[tuple[str, str]], *, label: str) -> forms.ChoiceField:
    given = list(choices)
    said = f"Expected one of {', '.join(value for value, _ in given)}."
    return forms.ChoiceField(
        choices=[("", "Any"), *given], required=False, label=label, error_messages={"invalid_choice": said}
    )


class Filters(forms.Form):
    """Every field may be left out."""

    outcome = _one_of(CHOICES.items(), label="Outcome")
    tool = forms.CharField(max_length=64, required=False, label="Tool")
    since = Moment(required=False, label="From")
    until = Moment(required=False, label="To", whole=True)
    source = _one_of(SOURCES, label="Source")
    caller = _one_of(CallerKind.choices, label="Asked by")
    person = forms.CharField(max_length=LONGEST, required=False, label="For whom")
    decider = forms.CharField(max_length=LONGEST, required=False, label="Decided by")
    means = _one_of(MEANS.items(), label="Answered")
    risk = _one_of([(str(level), f"L{level} {word}") for level, word in enumerate(RISK_LABELS)], label="Risk")
    rule = forms.CharField(max_length=64, required=False, label="Rule", help_text="The fingerprint that a call shows.")
    hurried = forms.BooleanField(required=False, label="Answered faster than it can be read")

    def __init__(self, query: Mapping[str, Any]) -> None:
        super().__init__(query)
        for name in ("tool", "person", "decider", "rule"):
            self.fields[name].widget.attrs["autocomplete"] = "off"
        self.fields["tool"].widget.attrs["list"] = "tools"

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        for name in ("tool", "person", "decider", "rule"):
            if storable(str(given.get(name, ""))) != given.get(name, ""):
                self.add_error(name, "It has a character that no name has.")
        since, until = given.get("since"), given.get("until")
        if since and until and until <= since:
            self.add_error("until", "Expected a day that is not before “From”.")
        return given

    @property
    def wanted(self) -> Wanted:
        """Of a valid form."""
        given = {name: value for name, value in self.cleaned_data.items() if value}
        return Wanted(**given | ({"risk": int(given["risk"])} if "risk" in given else {}))

    @property
    def query(self) -> QueryDict:
        """What narrows, as it was sent: to be sent again."""
        kept = QueryDict(mutable=True)
        kept.update({name: sent for name in self.fields if (sent := str(self.data.get(name, "")).strip())})
        return kept

    @property
    def shows_more(self) -> bool:
        return any(name in self.query or name in self.errors for name in MORE)

    @property
    def more(self) -> list[forms.BoundField]:
        return [self[name] for name in MORE if name != "hurried"]

    @property
    def first(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in MORE]
