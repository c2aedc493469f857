"""The list of the inbox: which calls are shown, as its query string says, the most urgent first, and bursts as one."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from django import forms
from django.core.validators import ProhibitNullCharactersValidator
from django.db.models import Q, TextField, Value
from django.db.models.functions import Cast, StrIndex
from django.http import QueryDict
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from hitlchat.agent import conversations
from hitlchat.agent.models import Conversation
from hitlchat.base import canonical
from hitlchat.base.visible import see
from hitlchat.gate import batch, card, deciders, disclosure, planted, question, queue, who
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import Absence, Approval, CallerKind, Handling, ToolCall, delegation

# PostgreSQL knows no NUL.
STORABLE: Final = ProhibitNullCharactersValidator()
# What there is to choose from is taken from so many of the most urgent calls.
LOOKED_AT: Final = 200
# Beyond this nobody needs the number, and counting on would cost the more the more wait.
MOST_COUNTED: Final = 1000
# So many are listed; of the rest it is said how many they are.
MOST: Final = 50
# What runs out within this stands apart.
SOON: Final = timedelta(minutes=1)
# Calls of one tool by one caller in one place, each asked within this after another one, are one burst.
BURST: Final = timedelta(seconds=10)
# What may be long, and no line needs.
LONG: Final = (
    *("disclosure", "call__arguments", "call__result", "call__output", "call__error"),
    *("call__tool__description", "call__tool__input_schema", "call__tool__output_schema", "call__tool__facts"),
)
SOURCES: Final = {
    "studio": "Tool Studio",
    "upstream": gettext_noop("Upstream servers"),
    "project": gettext_noop("This project"),
    "agent": gettext_noop("Agents"),
}
RISKS: Final = [
    ("", _("Any risk")),
    *(
        (str(level), format_lazy("L{level} {word}", level=level, word=_(word)))
        for level, word in enumerate(RISK_LABELS)
    ),
]
KINDS: Final = [
    ("", _("Anyone")),
    (CallerKind.CHAT.value, _("The assistant")),
    (CallerKind.MCP.value, _("MCP clients")),
    (CallerKind.API.value, _("API clients")),
    (CallerKind.STUDIO.value, _("Tests in the Studio")),
]
# In minutes.
SPANS: Final = {1: _("1 minute"), 5: _("5 minutes"), 15: _("15 minutes"), 60: _("1 hour"), 1440: _("1 day")}
AGES: Final = [
    ("", _("Any time")),
    *((str(age), format_lazy(_("More than {span}"), span=span)) for age, span in SPANS.items()),
]
COLUMNS: Final = {
    "tool": "tool_name",
    "source": "source",
    "risk": "risk_level",
    "caller": "caller__username",
    "kind": "caller_kind",
}


class Filter(forms.Form):
    """Bound to a query string. What is no choice is named beside its field, and counts for nothing."""

    tool = forms.ChoiceField(label=_("Tool"), required=False, validators=[STORABLE])
    source = forms.ChoiceField(label=_("Source"), required=False, validators=[STORABLE])
    risk = forms.ChoiceField(label=_("Risk"), required=False, choices=RISKS)
    caller = forms.ChoiceField(label=_("Called for"), required=False, validators=[STORABLE])
    kind = forms.ChoiceField(label=_("Asked by"), required=False, choices=KINDS)
    age = forms.ChoiceField(label=_("Waiting for"), required=False, choices=AGES)

    def __init__(self, sent: QueryDict, rows: list[tuple[str, ...]]) -> None:
        super().__init__(sent, auto_id="filter_%s")
        tools, sources, callers = ({row[at] for row in rows} for at in range(3))
        self._offer("tool", gettext("All tools"), tools)
        self._offer("source", gettext("All sources"), sources)
        self._offer("caller", gettext("Everyone"), callers)

    @property
    def given(self) -> dict[str, str]:
        return {name: value for name in self.fields if (value := self.cleaned_data.get(name))}

    @property
    def only(self) -> Q:
        only = Q(**{column: self.given[name] for name, column in COLUMNS.items() if name in self.given})
        if "age" in self.given:
            only &= Q(created_at__lte=timezone.now() - timedelta(minutes=int(self.given["age"])))
        return only

    @property
    def count(self) -> int:
        return len(self.given)

    @property
    def query(self) -> str:
        return urlencode(self.given)

    def _offer(self, name: str, nothing: str, found: set[str]) -> None:
        """Offer what was found, and what is chosen also where nothing like it waits any more."""
        field, chosen = self.fields[name], str(self.data.get(name, ""))
        assert isinstance(field, forms.ChoiceField)
        words = {each: gettext(word) for each, word in SOURCES.items()} if name == "source" else {}
        labels = {each: words.get(each, each) for each in found | ({chosen} if chosen else set())}
        field.choices = [("", nothing), *sorted(labels.items(), key=lambda item: item[1].lower())]


@dataclass(frozen=True)
class Count:
    """`number` is at most MOST_COUNTED; `over`: there are more."""

    number: int
    over: bool = False

    def __bool__(self) -> bool:
        return self.number > 0

    def __str__(self) -> str:
        return f"{self.number:,}+" if self.over else str(self.number)


@dataclass(frozen=True)
class Line:
    """One question. `conversation` is the chat it comes from, or whose agents ask, if that is the person's own."""

    approval: Approval
    conversation: Conversation | None = None
    times: int = 1
    # Names of those through which the call comes, the outermost first.
    agents: tuple[str, ...] = ()
    on_it: Handling | None = None
    # In whose place the person decides.
    absence: Absence | None = None
    is_check: bool = False
    # Which attempt it is after declined calls.
    attempt: int = 1

    @property
    def mark(self) -> str:
        """Names this very question: asked again, it is another one."""
        call = self.approval.call
        return card.key(self.approval.pk, call.round, cautioned=call.caution_takes_tick is not None)

    @property
    def version(self) -> str:
        """Return the version of a question as the list shows it: its deadline may be put off."""
        on_it = f"+{self.on_it.until.timestamp():.0f}" if self.on_it else ""
        absent = f"!{self.absence.person_id}" if self.absence else ""
        return f"{self.mark}@{self.deadline.timestamp():.0f}*{self.times}{on_it}{absent}"

    @property
    def deadline(self) -> datetime:
        assert self.approval.call.deadline is not None
        return self.approval.call.deadline

    @property
    def risk(self) -> int:
        return disclosure.shown_risk(self.approval)

    @property
    def suspect(self) -> bool:
        """Return whether what the list shows of it could deceive a reader; the card says how."""
        return see(self.approval.prompt).suspect

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
        tool = self.approval.call.tool
        if max(self.risk, tool.care if tool else 0) >= batch.TOO_RISKY:
            return gettext("From L{level} up, each call is answered individually.").format(level=batch.TOO_RISKY)
        if self.asks:
            return gettext("Each question needs its own answer.")
        if self.approval.call.caution_takes_tick is not None:
            return gettext("A second model cautions about this call: it is answered individually.")
        if self.attempt > 1:
            return gettext("A further attempt is answered individually.")
        return gettext("A call that asks again is answered individually.") if self.approval.call.round > 1 else ""


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


def filter_of(sent: QueryDict, user_id: int, *, narrow: bool = False) -> Filter:
    """Return the filter, validated. `narrow`: without what else there is to choose from."""
    rows: list[tuple[str, ...]] = []
    if not narrow:
        calls = ToolCall.objects.filter(pk__in=queue.first(user_id, LOOKED_AT)).order_by()
        rows = list(calls.values_list("tool_name", "source", "caller__username").distinct())
    found = Filter(sent, rows)
    found.is_valid()
    return found


def count_waiting(user_id: int, only: Q | None = None) -> Count:
    found = queue.count(user_id, MOST_COUNTED + 1, only)
    found += not only and planted.open_to(user_id) is not None
    return Count(min(found, MOST_COUNTED), found > MOST_COUNTED)


def of(user_id: int, shown: Filter | None = None) -> Listed:
    """Return what waits for this person, and passes the filter."""
    only = shown.only if shown else None
    call_ids = queue.first(user_id, MOST, only)
    rows = (
        Approval.objects.filter(call__in=call_ids)
        .select_related("call__caller", "call__tool", "handling__person")
        .defer(*LONG)
        .annotate(attempts=StrIndex(Cast("disclosure", TextField()), Value('"attempt":')))
    )
    waiting = count_waiting(user_id)
    found = count_waiting(user_id, only) if shown and shown.count else waiting
    # Of a chat of somebody else's nobody reads more than the call.
    own = {row.call.conversation_id for row in rows if row.call.conversation_id and row.call.caller_id == user_id}
    tops = delegation.roots(own)
    chats = conversations.of(user_id).in_bulk(tops.values())
    others = [row.call_id for row in rows if row.call.oversight_digest or row.call.caller_id != user_id]
    places = deciders.in_place_of(user_id, others)
    through = delegation.agents_of({row.call.conversation_id for row in rows if row.call.conversation_id})
    # Few are, and only of these is the long part read.
    numbers = {row.pk: row.disclosure.get("attempt", {}).get("number", 1) for row in rows if row.attempts}
    lines = []
    for row, times in queue.leads(sorted(rows, key=lambda row: call_ids.index(row.call_id))):
        where = row.call.conversation_id
        agents = tuple(each["tool"] for each in through.get(where, []))
        chat = chats.get(tops[where]) if where in tops else None
        lines.append(
            Line(row, chat, times, agents, who.on_it(row), places.get(row.call_id), attempt=numbers.get(row.pk, 1))
        )
    if not only and (check := planted.open_to(user_id)):
        lines.append(Line(planted.as_question(check), is_check=True))
    soon = timezone.now() + SOON
    urgent = _bursts(line for line in lines if line.deadline <= soon)
    rest = _bursts(line for line in lines if line.deadline > soon)
    titled = ((gettext("Less than a minute left"), urgent, True), (gettext("Soonest first"), rest, False))
    return Listed([Section(*each) for each in titled if each[1]], waiting, found)


def _bursts(lines: Iterable[Line]) -> list[Burst]:
    """Return each where the most urgent of its lines would be."""
    of_one_kind: dict[tuple[object, ...], list[Line]] = {}
    for line in lines:
        call = line.approval.call
        kind = (call.tool_name, call.caller_kind, call.caller_id, call.conversation_id, call.token_id)
        of_one_kind.setdefault(kind, []).append(line)
    bursts: list[list[Line]] = []
    for same in of_one_kind.values():
        last: datetime | None = None
        for line in sorted(same, key=lambda line: line.approval.created_at):
            at = line.approval.created_at
            if last is None or at - last > BURST:
                bursts.append([])
            bursts[-1].append(line)
            last = at
    urgent_first = [Burst(sorted(burst, key=lambda line: line.deadline)) for burst in bursts]
    return sorted(urgent_first, key=lambda burst: burst.lines[0].deadline)
