"""The list of the inbox: which calls are shown, as its query string says, the most urgent first, and bursts as one."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django import forms
from django.core.validators import ProhibitNullCharactersValidator
from django.db.models import Q
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from hitlchat.agent import conversations
from hitlchat.agent.models import Conversation
from hitlchat.base import canonical
from hitlchat.gate import batch, card, disclosure, question, queue
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import Approval, CallerKind, ToolCall, delegation

# PostgreSQL knows no NUL.
STORABLE: Final = ProhibitNullCharactersValidator()
# What there is to choose from is taken from so many of the most urgent calls.
LOOKED_AT: Final = 200
AGES: Final = {
    "1": gettext_noop("1 minute"),
    "5": gettext_noop("5 minutes"),
    "15": gettext_noop("15 minutes"),
    "60": gettext_noop("1 hour"),
    "1440": gettext_noop("1 day"),
}
KINDS: Final = {
    CallerKind.CHAT.value: gettext_noop("The assistant"),
    CallerKind.MCP.value: gettext_noop("MCP clients"),
    CallerKind.API.value: gettext_noop("API clients"),
    CallerKind.STUDIO.value: gettext_noop("Tests in the Studio"),
}
SOURCES: Final = {
    "studio": "Tool Studio",
    "upstream": gettext_noop("Upstream servers"),
    "project": gettext_noop("This project"),
    "agent": gettext_noop("Agents"),
}


class Filter(forms.Form):
    """Bound to a query string. What is no choice is named beside its field, and counts for nothing."""

    tool = forms.ChoiceField(label=_("Tool"), required=False, validators=[STORABLE])
    source = forms.ChoiceField(label=_("Source"), required=False, validators=[STORABLE])
    risk = forms.ChoiceField(label=_("Risk"), required=False)
    caller = forms.ChoiceField(label=_("Called for"), required=False, validators=[STORABLE])
    kind = forms.ChoiceField(label=_("Asked by"), required=False)
    age = forms.ChoiceField(label=_("Waiting for"), required=False)

    def __init__(self, sent: QueryDict, rows: list[tuple[str, ...]]) -> None:
        super().__init__(sent, auto_id="filter_%s")
        chosen = {name: str(sent.get(name, "")) for name in self.fields}
        for name, choices in _choices(rows, chosen).items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices

    @property
    def only(self) -> Q:
        """Return the condition on a ToolCall."""
        return wanted({name: self.cleaned_data.get(name, "") for name in self.fields})

    @property
    def count(self) -> int:
        """Return how many of the fields hide something."""
        return sum(bool(self.cleaned_data.get(name)) for name in self.fields)

    @property
    def query(self) -> str:
        """The fields that are set, as a query string."""
        kept = QueryDict(mutable=True)
        kept.update({name: value for name in self.fields if (value := self.cleaned_data.get(name))})
        return kept.urlencode()


def filter_of(sent: QueryDict, user_id: int, *, narrow: bool = False) -> Filter:
    """Judged already. `narrow`: without what else there is to choose from."""
    rows: list[tuple[str, ...]] = []
    if not narrow:
        calls = ToolCall.objects.filter(pk__in=queue.first(user_id, LOOKED_AT)).order_by()
        rows = list(calls.values_list("tool_name", "source", "caller__username").distinct())
    found = Filter(sent, rows)
    found.is_valid()
    return found


def wanted(given: dict[str, str]) -> Q:
    """Return what the values of the fields ask of a ToolCall; an empty value asks nothing."""
    columns: dict[str, Any] = {"tool": "tool_name", "source": "source", "risk": "risk_level", "kind": "caller_kind"}
    columns["caller"] = "caller__username"
    only = Q(**{column: given[name] for name, column in columns.items() if given.get(name)})
    if given.get("age"):
        only &= Q(created_at__lte=timezone.now() - timedelta(minutes=int(given["age"])))
    return only


def _choices(rows: list[tuple[str, ...]], chosen: dict[str, str]) -> dict[str, list[tuple[str, str]]]:
    """Return each with an empty one, and the one that is chosen also where nothing like it waits any more."""
    tools, sources, callers = ({row[at] for row in rows} for at in range(3))
    return {
        "tool": _listed(gettext("All tools"), {name: name for name in tools}, chosen["tool"]),
        "source": _listed(
            gettext("All sources"), {name: gettext(SOURCES.get(name, name)) for name in sources}, chosen["source"]
        ),
        "risk": [
            ("", gettext("Any risk")),
            *((str(level), f"L{level} {gettext(word)}") for level, word in enumerate(RISK_LABELS)),
        ],
        "caller": _listed(gettext("Everyone"), {name: name for name in callers}, chosen["caller"]),
        "kind": [("", gettext("Anyone")), *((value, gettext(word)) for value, word in KINDS.items())],
        "age": [
            ("", gettext("Any time")),
            *((value, gettext("More than {span}").format(span=gettext(words))) for value, words in AGES.items()),
        ],
    }


def _listed(nothing: str, found: dict[str, str], chosen: str) -> list[tuple[str, str]]:
    more = {chosen: gettext(SOURCES.get(chosen, chosen))} if chosen else {}
    return [("", nothing), *sorted((more | found).items(), key=lambda item: item[1].lower())]


# Beyond this nobody needs the number, and counting on would cost the more the more wait.
MOST_COUNTED = 1000


@dataclass(frozen=True)
class Count:
    """`number` is at most MOST; `over`: there are more."""

    number: int
    over: bool = False

    def __bool__(self) -> bool:
        return self.number > 0

    def __str__(self) -> str:
        return f"{self.number:,}+" if self.over else str(self.number)


def count_waiting(user_id: int) -> Count:
    found = queue.count(user_id, MOST_COUNTED + 1)
    return Count(min(found, MOST_COUNTED), found > MOST_COUNTED)


# So many are listed; of the rest it is said how many they are.
MOST: Final = 50
# What runs out within this stands apart.
SOON: Final = timedelta(minutes=1)
# Calls of one tool by one caller in one place, each asked within this after another one, are one burst.
BURST: Final = timedelta(seconds=10)
# What may be long, and no line needs.
LONG: Final = ("disclosure", "call__arguments", "call__result", "call__output", "call__error")


@dataclass(frozen=True)
class Line:
    """One question. `conversation` is the chat it comes from, or whose agents ask, if that is the person's own."""

    approval: Approval
    conversation: Conversation | None = None
    times: int = 1
    # Names of those through which the call comes, the outermost first.
    agents: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """Names this very question: asked again, it is another one."""
        return card.key(self.approval.pk, self.approval.call.round)

    @property
    def version(self) -> str:
        """Return the version of a question as the list shows it: its deadline may be put off."""
        return f"{self.mark}@{self.deadline.timestamp():.0f}*{self.times}"

    @property
    def deadline(self) -> datetime:
        assert self.approval.call.deadline is not None
        return self.approval.call.deadline

    @property
    def risk(self) -> int:
        return disclosure.said(self.approval)

    @property
    def asks(self) -> bool:
        """Return whether it asks the person, and nothing would run."""
        return question.is_one(self.approval.call)

    @property
    def together(self) -> str:
        """Names what it may be answered together with; empty if it is answered by itself."""
        call = self.approval.call
        return "" if self.alone else canonical.sha256([str(call.tool_id), call.definition_hash])[:16]

    @property
    def alone(self) -> str:
        """Return why it cannot be answered together with others, as far as a line knows; empty if it may be."""
        if self.risk >= batch.TOO_RISKY:
            return gettext("From L{level} up each call is answered by itself.").format(level=batch.TOO_RISKY)
        if self.asks:
            return gettext("Each question has an answer of its own.")
        return (
            gettext("A call that is asked about again is answered by itself.") if self.approval.call.round > 1 else ""
        )


@dataclass(frozen=True)
class Burst:
    """Lines that belong together, or a single one."""

    lines: list[Line]

    @property
    def key(self) -> str:
        """Stays while it grows: that of its first question."""
        return f"burst-{min(line.mark for line in self.lines)}"

    @property
    def together(self) -> str:
        """Names what all of it may be answered together with, which is less if there is too much of it."""
        kinds = {line.together for line in self.lines}
        return kinds.pop() if len(kinds) == 1 else ""


@dataclass(frozen=True)
class Section:
    title: str
    bursts: list[Burst]
    urgent: bool = False

    @property
    def count(self) -> int:
        return sum(line.times for burst in self.bursts for line in burst.lines)


@dataclass(frozen=True)
class Listed:
    """The lines of the list. `found`: how many the filter leaves."""

    sections: list[Section]
    waiting: Count
    found: Count

    @property
    def lines(self) -> list[Line]:
        return [line for section in self.sections for burst in section.bursts for line in burst.lines]

    @property
    def more(self) -> str:
        """Return how many are not listed, of those that the filter leaves; empty if all are."""
        left = self.found.number - sum(line.times for line in self.lines)
        return f"{left:,}{'+' if self.found.over else ''}" if left > 0 else ""

    @property
    def hidden(self) -> str:
        """Return how many the filter hides; empty if none."""
        if self.waiting.over:
            # Whether there are more than were counted behind it, nobody knows.
            return "" if self.found.over else f"{self.waiting.number - self.found.number:,}+"
        left = self.waiting.number - self.found.number
        return f"{left:,}" if left > 0 else ""

    @property
    def mark(self) -> str:
        """Changes with whatever of it is shown."""
        sections = [
            [section.title, *(line.version for b in section.bursts for line in b.lines)] for section in self.sections
        ]
        return canonical.sha256([sections, str(self.waiting), str(self.found)])[:16]


def of(user_id: int, shown: Filter | None = None) -> Listed:
    """Return what waits for this person, and passes the filter."""
    only = shown.only if shown else None
    rows = _rows(queue.first(user_id, MOST, only))
    waiting = count_waiting(user_id)
    found = waiting
    if shown and shown.count:
        number = queue.count(user_id, MOST_COUNTED + 1, only)
        found = Count(min(number, MOST_COUNTED), number > MOST_COUNTED)
    return Listed(_sections(_lines(rows, user_id)), waiting, found)


def _rows(call_ids: list[UUID]) -> list[Approval]:
    """Return the approvals in this order."""
    rows = Approval.objects.filter(call__in=call_ids).select_related("call__caller").defer(*LONG)
    place = {call_id: number for number, call_id in enumerate(call_ids)}
    return sorted(rows, key=lambda row: place[row.call_id])


def _lines(rows: list[Approval], user_id: int) -> list[Line]:
    # Of a chat of somebody else's nobody is told more than the call.
    own = {row.call.conversation_id for row in rows if row.call.conversation_id and row.call.caller_id == user_id}
    tops = delegation.roots(own)
    chats = conversations.of(user_id).in_bulk(tops.values())
    there = {where: chats.get(top) for where, top in tops.items()}
    through = delegation.agents_of({row.call.conversation_id for row in rows if row.call.conversation_id})
    return [
        Line(row, there.get(where) if where else None, times, tuple(each["tool"] for each in through.get(where, [])))
        for row, times in batch.leads(rows)
        for where in [row.call.conversation_id]
    ]


def _sections(lines: list[Line]) -> list[Section]:
    soon = timezone.now() + SOON
    urgent = [line for line in lines if line.deadline <= soon]
    rest = [line for line in lines if line.deadline > soon]
    sections = [
        Section(gettext("Less than a minute left"), _bursts(urgent), urgent=True),
        Section(gettext("Soonest first"), _bursts(rest)),
    ]
    return [section for section in sections if section.bursts]


def _bursts(lines: Iterable[Line]) -> list[Burst]:
    """Return each where the most urgent of its lines would be."""
    of_one_kind: dict[tuple[object, ...], list[Line]] = {}
    for line in lines:
        call = line.approval.call
        kind = (call.tool_name, call.caller_kind, call.caller_id, call.conversation_id, call.token_id)
        of_one_kind.setdefault(kind, []).append(line)
    bursts = [Burst(burst) for same in of_one_kind.values() for burst in _in_time(same)]
    return sorted(bursts, key=lambda burst: burst.lines[0].deadline)


def _in_time(lines: list[Line]) -> list[list[Line]]:
    """Split wherever nothing was asked for longer than BURST; the most urgent first within each."""
    found: list[list[Line]] = []
    last: datetime | None = None
    for line in sorted(lines, key=lambda line: line.approval.created_at):
        at = line.approval.created_at
        if last is None or at - last > BURST:
            found.append([])
        found[-1].append(line)
        last = at
    return [sorted(burst, key=lambda line: line.deadline) for burst in found]
