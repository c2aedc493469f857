"""The lines of the history's page, with what each needs read at once: as many queries for fifty as for one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast, Substr
from django.http import QueryDict

from hitlchat.accounts.roles import may_administer
from hitlchat.agent.unknown import RUN_AGAIN
from hitlchat.approvals.history.form import Filters
from hitlchat.base.durations import span
from hitlchat.gate.history import finding
from hitlchat.gate.history.finding import Wanted
from hitlchat.gate.history.row import (
    approval_of,
    decisions_of,
    label_of,
    needed,
    outcome_of,
    ran_unasked,
    seconds_to_decide,
)
from hitlchat.gate.models import AuditEvent, Decision, ToolCall, Verdict
from hitlchat.gate.status import Status

PAGE: Final = 50
# So many calls with unknown outcome stand first; of the rest it is said how many they are, up to a number.
FIRST: Final = 5
MOST_COUNTED: Final = 1000
BEGINNING: Final = 160
LARGE: Final = ("arguments", "result", "error", "output")
UNKNOWN: Final = Wanted(outcome=Status.UNKNOWN.value)


@dataclass(frozen=True)
class Line:
    """One call. `again`: the id of the call that it was run again as. `may_mark` and `may_run` as its viewer may."""

    call: ToolCall
    again: str = ""
    may_mark: bool = False
    may_run: bool = False

    @property
    def outcome(self) -> str:
        return outcome_of(self.call)

    @property
    def label(self) -> str:
        return label_of(self.call)

    @property
    def unasked(self) -> bool:
        return ran_unasked(self.call)

    @property
    def sentence(self) -> str:
        """The question; of a call that nobody was asked about, how its arguments begin."""
        asked = approval_of(self.call)
        return asked.prompt if asked else ""

    @property
    def beginning(self) -> str:
        text: str = getattr(self.call, "beginning", "") or ""
        return f"{text[:BEGINNING]}…" if len(text) > BEGINNING else "" if text == "{}" else text

    @property
    def answers(self) -> list[tuple[str, Decision]]:
        said = {Verdict.APPROVE.value: "approved", Verdict.DECLINE.value: "declined"}
        return [(said[each.verdict], each) for each in decisions_of(self.call)]

    @property
    def hurried(self) -> bool:
        return any(each.hurried for each in decisions_of(self.call))

    @property
    def took(self) -> str:
        seconds = seconds_to_decide(self.call)
        return "" if seconds is None else span(seconds)


@dataclass(frozen=True)
class Chip:
    """A filter that is set, in words, and the query without it."""

    label: str
    said: str
    without: str


def rows() -> QuerySet[ToolCall]:
    """What a line needs, and no more: arguments, results and disclosures may be large."""
    beginning = Substr(Cast("arguments", TextField()), 1, BEGINNING + 1)
    return needed(ToolCall.objects.all()).annotate(beginning=beginning).defer(*LARGE)


def page(user: User, wanted: Wanted, before: ToolCall | None) -> tuple[list[Line], bool]:
    """The lines, and whether there are more behind the last."""
    found = finding.page(finding.ways(user), wanted, PAGE + 1, before=before, rows=rows())
    return lines(user, found[:PAGE]), len(found) > PAGE


def unknown(user: User) -> tuple[list[Line], int]:
    """The first of the calls of which nobody knows whether they happened, and how many there are."""
    among = finding.ways(user)
    found = finding.page(among, UNKNOWN, FIRST, rows=rows())
    return lines(user, found), finding.count(among, UNKNOWN, MOST_COUNTED) if len(found) == FIRST else len(found)


def lines(user: User, calls: Iterable[ToolCall]) -> list[Line]:
    calls, all_may_mark = list(calls), may_administer(user)
    again = run_again([call.pk for call in calls if call.status == Status.UNKNOWN])
    return [
        Line(
            call,
            again=again.get(call.pk, ""),
            may_mark=call.status == Status.UNKNOWN and (all_may_mark or call.caller_id == user.pk),
            may_run=call.status == Status.UNKNOWN and call.caller_id == user.pk and call.pk not in again,
        )
        for call in calls
    ]


def run_again(calls: list[UUID]) -> dict[UUID | None, str]:
    """As which calls these were run again, as far as they were."""
    if not calls:
        return {}
    events: Iterable[tuple[UUID | None, Any]] = AuditEvent.objects.filter(call__in=calls, name=RUN_AGAIN).values_list(
        "call_id", "data"
    )
    return {call_id: str(data["as"]) for call_id, data in events}


def chips(form: Filters) -> Iterator[Chip]:
    for name, sent in form.query.items():
        without = form.query.copy()
        del without[name]
        yield Chip(str(form[name].label), _said(form, name, str(sent)), _encoded(without))


def _said(form: Filters, name: str, sent: str) -> str:
    choices = dict(getattr(form.fields[name], "choices", ()))
    return "yes" if name == "hurried" else str(choices.get(sent, sent))


def _encoded(query: QueryDict) -> str:
    return query.urlencode()
