"""The page's list of calls: the form of its filters, and its lines with what each needs read at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, Final

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from hitlchat.accounts.roles import may_administer
from hitlchat.agent.unknown import RUN_AGAIN
from hitlchat.base import moments
from hitlchat.base.canonical import storable
from hitlchat.base.moments import span
from hitlchat.gate import disclosure, question
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.history import finding
from hitlchat.gate.history.finding import (
    CHOICES,
    MEANS,
    Wanted,
    decisions_of,
    label_of,
    needed,
    outcome_of,
    ran_unasked,
    seconds_to_decide,
)
from hitlchat.gate.models import AuditEvent, CallerKind, ToolCall
from hitlchat.gate.status import Status

SOURCES: Final = (
    ("studio", "Tool Studio"),
    ("upstream", gettext_noop("Upstream server")),
    ("project", gettext_noop("Your project")),
)
LONGEST: Final = 150
PAGE: Final = 50
# So many calls with unknown outcome stand first; of the rest it is said how many they are, up to a number.
FIRST: Final = 5
MOST_COUNTED: Final = 1000
LARGE: Final = ("result", "error", "output")
UNKNOWN: Final = Wanted(outcome=Status.UNKNOWN.value)
EXPECTED_MOMENT: Final = _("Expected a day such as 2026-11-22, or a moment with its time zone.")
NAMES: Final = ("tool", "person", "decider", "rule")
# Those that stand behind a fold, unless one of them is set.
MORE: Final = ("source", "caller", "person", "decider", "means", "risk", "rule", "hurried")

# What the page shows of one call.
Line = dict[str, Any]


class Moment(forms.Field):
    """A day of the server's time zone, as `of_day` has it, or a moment in ISO 8601."""

    widget = forms.DateInput(attrs={"type": "date"})

    def __init__(self, *, of_day: Callable[[date], datetime], **more: Any) -> None:
        super().__init__(**more)
        self._of_day = of_day

    def to_python(self, value: object) -> datetime | None:
        text = str(value or "").strip()
        found = moments.read(text, self._of_day)
        if text and found is None:
            raise forms.ValidationError(EXPECTED_MOMENT)
        return found


def _one_of(choices: Iterable[tuple[str, str]], *, label: str, numbered: bool = False) -> forms.ChoiceField:
    """Return a field whose choices are translated as they are drawn; `numbered`: their words follow the level."""
    given = [
        (value, format_lazy("L{level} {word}", level=value, word=_(word)) if numbered else _(word))
        for value, word in choices
    ]
    expected = format_lazy(_("Expected one of {values}."), values=", ".join(value for value, _word in given))
    return forms.ChoiceField(
        choices=[("", _("Any")), *given],
        required=False,
        label=_(label),
        error_messages={"invalid_choice": expected},
    )


class Filters(forms.Form):
    """Every field may be left out."""

    outcome = _one_of(CHOICES.items(), label=gettext_noop("Outcome"))
    tool = forms.CharField(max_length=64, required=False, label=_("Tool"))
    since = Moment(required=False, label=_("From"), of_day=moments.beginning)
    until = Moment(required=False, label=_("To"), of_day=moments.end)
    source = _one_of(SOURCES, label=gettext_noop("Source"))
    caller = _one_of(CallerKind.choices, label=gettext_noop("Asked by"))
    person = forms.CharField(max_length=LONGEST, required=False, label=_("For whom"))
    decider = forms.CharField(max_length=LONGEST, required=False, label=_("Decided by"))
    means = _one_of(MEANS.items(), label=gettext_noop("Answered"))
    levels = ((str(level), word) for level, word in enumerate(RISK_LABELS))
    risk = _one_of(levels, label=gettext_noop("Risk"), numbered=True)
    rule = forms.CharField(
        max_length=64, required=False, label=_("Rule"), help_text=_("The definition hash shown with a call.")
    )
    hurried = forms.BooleanField(required=False, label=_("Answered faster than readable"))

    def __init__(self, query: Mapping[str, Any]) -> None:
        super().__init__(query)
        for name in NAMES:
            self.fields[name].widget.attrs["autocomplete"] = "off"
        self.fields["tool"].widget.attrs["list"] = "tools"

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        for name in NAMES:
            if storable(str(given.get(name, ""))) != given.get(name, ""):
                self.add_error(name, _("Contains a character that is not allowed in names."))
        since, until = given.get("since"), given.get("until")
        if since and until and until <= since:
            self.add_error("until", _("Expected a day on or after “From”."))
        return given

    @property
    def wanted(self) -> Wanted:
        given = {name: value for name, value in self.cleaned_data.items() if value}
        return Wanted(**given | ({"risk": int(given["risk"])} if "risk" in given else {}))

    @property
    def query(self) -> QueryDict:
        """Return what narrows, as it was sent: to be sent again."""
        query = QueryDict(mutable=True)
        query.update({name: sent for name in self.fields if (sent := str(self.data.get(name, "")).strip())})
        return query

    @property
    def chips(self) -> Iterator[dict[str, str]]:
        """Yield each filter that is set, in words, and the query without it."""
        for name, sent in self.query.items():
            choices = dict(getattr(self.fields[name], "choices", ()))
            without = self.query
            del without[name]
            yield {
                "label": str(self[name].label),
                "value": gettext("yes") if name == "hurried" else str(choices.get(sent, sent)),
                "without": without.urlencode(),
            }

    @property
    def shows_more(self) -> bool:
        return any(name in self.query or name in self.errors for name in MORE)

    @property
    def more(self) -> list[forms.BoundField]:
        return [self[name] for name in MORE if name != "hurried"]

    @property
    def first(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in MORE]


def page(user: User, wanted: Wanted, before: ToolCall | None) -> tuple[list[Line], bool]:
    """Return the lines of a page, and whether more follow."""
    found = finding.page(finding.ways(user), wanted, PAGE + 1, before=before, rows=rows())
    return lines(user, found[:PAGE]), len(found) > PAGE


def unknown(user: User) -> tuple[list[Line], int]:
    """The first of the calls of which nobody knows whether they happened, and how many there are."""
    among = finding.ways(user)
    found = finding.page(among, UNKNOWN, FIRST, rows=rows())
    return lines(user, found), finding.count(among, UNKNOWN, MOST_COUNTED) if len(found) == FIRST else len(found)


def lines(user: User, calls: Iterable[ToolCall]) -> list[Line]:
    """Return each call with what its viewer may do about it; `again`: the id of the call that it was run again as."""
    calls, all_may_mark = list(calls), may_administer(user)
    lost = [call.pk for call in calls if call.status == Status.UNKNOWN]
    events = AuditEvent.objects.filter(call__in=lost, name=RUN_AGAIN).values_list("call_id", "data") if lost else ()
    again = {call_id: str(data["as"]) for call_id, data in events}
    found = []
    for call in calls:
        answers, seconds = decisions_of(call), seconds_to_decide(call)
        is_lost, is_own = call.pk in lost, call.caller_id == user.pk
        line = {
            "call": call,
            "outcome": outcome_of(call),
            "label": label_of(call),
            "unasked": ran_unasked(call),
            "sentence": disclosure.sentence(call),
            "answers": answers,
            "is_question": question.is_one(call),
            "hurried": any(each.hurried for each in answers),
            "took": "" if seconds is None else span(seconds),
            "again": again.get(call.pk, ""),
            "may_mark": is_lost and (all_may_mark or is_own),
            "may_run": is_lost and is_own and call.pk not in again,
        }
        found.append(line)
    return found


def rows() -> QuerySet[ToolCall]:
    """Return what a line needs, and no more: results and disclosures may be large."""
    return disclosure.with_words(needed(ToolCall.objects.all())).defer(*LARGE)
