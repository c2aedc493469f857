"""The figures that insights show for a period, counted from the record by plain arithmetic."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain
from statistics import median_low
from typing import Any, Final, cast

from django.contrib.auth.models import User
from django.db.models import BooleanField, CharField, Count, Expression, Func, IntegerField, Max, Q, QuerySet
from django.db.models.expressions import ExpressionWrapper
from django.db.models.functions import Cast, Substr
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.gate import hindsight
from hitlchat.gate.attention import IDLE_SECONDS
from hitlchat.gate.models import Decision, Tool, ToolCall, Verdict
from hitlchat.gate.results import NOT_EXECUTED
from hitlchat.gate.status import STARTED, Status

# As it stands in the address, how many days, and in words.
PERIODS: Final = {
    "7d": (7, gettext_noop("7 days")),
    "4w": (28, gettext_noop("4 weeks")),
    "3m": (91, gettext_noop("3 months")),
}
USUAL: Final = "4w"

# Where the columns of the picture begin, in seconds.
BINS: Final = (0, 2, 5, 15, 30, 60, 120, 300)
BIN_NAMES: Final = (
    gettext_noop("under 2 s"), gettext_noop("2 to 5 s"), gettext_noop("5 to 15 s"), gettext_noop("15 to 30 s"),
    gettext_noop("30 to 60 s"), gettext_noop("1 to 2 min"), gettext_noop("2 to 5 min"), gettext_noop("later"),
)  # fmt: skip
SATURDAY: Final = 5

# Characters of “2026-11-22 14:53:11”: up to the hour, to ten minutes, to the minute.
HOUR, TEN_MINUTES, MINUTE = 13, 15, 16
FILL: Final = "2000-01-01 00:00"

# In the statement itself: of a parameter SQLite does not know in time that the index of what waits is for it.
WAITING: Final = Func(template=f"'{Status.WAITING.value}'", output_field=CharField())

# To group by: for the column itself SQLite would read all there ever was, by the index of outcomes, and not the period.
AS_TEXT: Final = Func("status", template="%(expressions)s || ''", output_field=CharField())

# Why calls ran unasked is read from so many of the latest, and so many reasons are told.
LATEST_UNASKED: Final = 2000
MOST_REASONS: Final = 6

# What became of a question; what is neither was withdrawn.
COLUMNS: Final = dict.fromkeys([Status.APPROVED, *STARTED], "approved") | {
    Status.DECLINED: "declined",
    Status.EXPIRED: "expired",
}
# A call has a deadline from when it is asked about on.
WAS_ASKED: Final = Q(deadline__isnull=False)

# Of answers: whose, which, hurried or not, after how many seconds if they are known, and how many of these.
Row = tuple[int, str, bool, int | None, int]


@dataclass(frozen=True)
class Period:
    """A period of whole days up to and with today."""

    key: str
    today: date

    @classmethod
    def of(cls, key: str) -> "Period":
        """Return the period of this key; the usual one for an unknown key."""
        return cls(key if key in PERIODS else USUAL, timezone.localdate())

    @property
    def words(self) -> str:
        return PERIODS[self.key][1]

    @property
    def days(self) -> list[date]:
        count = PERIODS[self.key][0]
        return [self.today - timedelta(days=ago) for ago in reversed(range(count))]

    @property
    def since(self) -> datetime:
        """Return where the first day begins."""
        return timezone.make_aware(datetime.combine(self.days[0], time()))


@dataclass
class Tally:
    """Questions, by what became of them."""

    asked: int = 0
    approved: int = 0
    declined: int = 0
    expired: int = 0

    @property
    def answered(self) -> int:
        return self.approved + self.declined

    @property
    def others(self) -> int:
        """Return how many wait or were withdrawn."""
        return self.asked - self.answered - self.expired


@dataclass
class OfTool:
    """Figures of a tool: `source` is empty if it is gone; `risk` is the highest it was called with."""

    name: str
    tally: Tally = field(default_factory=Tally)
    unasked: int = 0
    # Of these, as their people said afterwards.
    fine: int = 0
    should_ask: int = 0
    risk: int = 0
    edited: int = 0
    hurried: int = 0
    source: str = ""


@dataclass
class OfPerson:
    """Figures of a person: `seconds` is what asking took of their time."""

    name: str
    approved: int = 0
    declined: int = 0
    hurried: int = 0
    edited: int = 0
    seconds: int = 0

    @property
    def answered(self) -> int:
        return self.approved + self.declined


@dataclass(frozen=True)
class Answers:
    """Answers by whole seconds, and by whether they count as hurried; `unseen`: without a recorded display."""

    seconds: Counter[tuple[int, bool]]
    unseen: int = 0

    @property
    def count(self) -> int:
        return sum(self.seconds.values())

    @property
    def hurried(self) -> int:
        return sum(count for (_, hurried), count in self.seconds.items() if hurried)

    @property
    def median(self) -> int | None:
        """Return the median in seconds."""
        return median_low(seconds for seconds, _ in self.seconds.elements()) if self.seconds else None

    @property
    def spent(self) -> int:
        """Seconds of people's time, each answer up to where it was surely interrupted."""
        return sum(min(seconds, IDLE_SECONDS) * count for (seconds, _), count in self.seconds.items())

    @property
    def bins(self) -> list[tuple[int, int]]:
        """Return for each column how many there are, and how many of them were hurried."""
        found = [[0, 0] for _ in BINS]
        for (seconds, hurried), count in self.seconds.items():
            at = max(index for index, begin in enumerate(BINS) if seconds >= begin)
            found[at][0] += count
            found[at][1] += count if hurried else 0
        return [(every, hurried) for every, hurried in found]


@dataclass(frozen=True)
class Figures:
    """All figures: `tools` and `people` with most first; `whys` are reasons of the latest calls, with their counts."""

    period: Period
    days: dict[date, Tally]
    tools: list[OfTool]
    people: list[OfPerson]
    answers: Answers
    whys: Sequence[Mapping[str, object]]

    @property
    def total(self) -> Tally:
        every = self.days.values()
        return Tally(*(sum(getattr(day, each.name) for day in every) for each in fields(Tally)))

    @property
    def answered(self) -> int:
        return self.answers.count + self.answers.unseen

    @property
    def unasked(self) -> int:
        return sum(tool.unasked for tool in self.tools)

    @property
    def should_ask(self) -> int:
        return sum(tool.should_ask for tool in self.tools)

    @property
    def looked_back(self) -> int:
        return sum(tool.fine for tool in self.tools) + self.should_ask

    @property
    def expired_at_weekends(self) -> int:
        return sum(tally.expired for day, tally in self.days.items() if day.weekday() >= SATURDAY)

    @property
    def is_empty(self) -> bool:
        return not (self.total.asked or self.unasked or self.answered)


class WholeSeconds(Func):
    """The whole seconds from the second of two moments to the first, rounded down."""

    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> Any:
        # Moments are text there, and Django's own difference is a Python function. Days are to the millisecond.
        template = "CAST((julianday(%(expressions)s)) * 86400 + 0.002 AS INTEGER)"
        return super().as_sql(compiler, connection, template=template, arg_joiner=") - julianday(")

    def as_postgresql(self, compiler: Any, connection: Any, **_: Any) -> Any:
        template = "CAST(FLOOR(EXTRACT(EPOCH FROM (%(expressions)s))) AS INTEGER)"
        return super().as_sql(compiler, connection, template=template, arg_joiner=" - ")


def stretch(column: str, since: datetime) -> Expression:
    """The hour of a moment, in UTC and as text, which both databases have it as; less than an hour where the days of
    the installation's time zone begin within one.
    """
    moments = [timezone.localtime(each) for each in (since, timezone.now())]
    minutes = [int(cast("timedelta", each.utcoffset()).total_seconds()) // 60 for each in moments]
    if all(offset % 60 == 0 for offset in minutes):
        precision = HOUR
    else:
        precision = TEN_MINUTES if all(offset % 10 == 0 for offset in minutes) else MINUTE
    return Substr(Cast(column, CharField()), 1, precision)


def day_of(stretched: str) -> date:
    """The local day of a `stretch`."""
    moment = datetime.fromisoformat(stretched + FILL[len(stretched) :]).replace(tzinfo=UTC)
    return timezone.localtime(moment).date()


def count(period: Period, user: User | None) -> Figures:
    """Count the figures of everyone; with a `user`, of the calls made for them and of their own answers."""
    since = period.since
    every = ToolCall.objects.order_by() if user is None else ToolCall.objects.filter(caller=user).order_by()
    decisions = Decision.objects.filter(decided_at__gte=since).order_by()
    if user is not None:
        decisions = decisions.filter(person=user)
    # In these words, since they are those of the index. What executes in this moment is counted a moment later.
    over = every.filter(created_at__gte=since, settled_at__isnull=False)
    waiting = every.filter(status=WAITING)
    tools = _tools(over, waiting.filter(created_at__gte=since))
    people, answers = _people(decisions)
    _add_edited_and_hurried(decisions, tools, people)
    for name, (fine, should_ask) in hindsight.counted(since, user).items():
        if name in tools:
            tools[name].fine, tools[name].should_ask = fine, should_ask
    days = {day: Tally() for day in period.days}
    for rows in (over.filter(WAS_ASKED), waiting):
        found = rows.annotate(stretch=stretch("created_at", since), outcome=AS_TEXT).values("stretch", "outcome")
        for row in found.annotate(count=Count("*")):
            # What waits may do so since before the period; and the clocks of processes may differ.
            if (tally := days.get(day_of(row["stretch"]))) is not None:
                _add(tally, row["outcome"], row["count"])
    # By what it is not: the index of outcomes, which is narrower, would come before the one of times.
    ran_unasked = over.filter(~WAS_ASKED).exclude(status__in=NOT_EXECUTED)
    latest = ran_unasked.order_by("-created_at").values("pk")[:LATEST_UNASKED]
    whys = ToolCall.objects.filter(pk__in=latest).order_by().values("reason").annotate(count=Count("*"))
    return Figures(
        period=period,
        days=days,
        tools=sorted(tools.values(), key=lambda tool: (-tool.tally.asked, -tool.unasked, tool.name)),
        people=sorted(people.values(), key=lambda each: (-each.answered, each.name)),
        answers=answers,
        whys=list(whys.order_by("-count", "reason")[:MOST_REASONS]),
    )


def _add(tally: Tally, status: str, number: int) -> None:
    tally.asked += number
    if (column := COLUMNS.get(Status(status))) is not None:
        setattr(tally, column, getattr(tally, column) + number)


def _tools(*calls: QuerySet[ToolCall]) -> dict[str, OfTool]:
    found: dict[str, OfTool] = {}
    was_asked = ExpressionWrapper(WAS_ASKED, output_field=BooleanField())
    by_tool = [each.annotate(asked=was_asked).values("tool_name", "asked", "status") for each in calls]
    for row in chain(*(each.annotate(count=Count("*"), risk=Max("risk_level")) for each in by_tool)):
        if not row["asked"] and row["status"] not in STARTED:
            # It never came to run, and nobody was asked: it was rejected or refused.
            continue
        tool = found.setdefault(row["tool_name"], OfTool(row["tool_name"]))
        tool.risk = max(tool.risk, row["risk"])
        if row["asked"]:
            _add(tool.tally, row["status"], row["count"])
        else:
            tool.unasked += row["count"]
    for name, source in Tool.objects.filter(name__in=found).values_list("name", "source"):
        found[name].source = source
    return found


def _people(decisions: QuerySet[Decision]) -> tuple[dict[int, OfPerson], Answers]:
    people: dict[int, OfPerson] = {}
    seconds: Counter[tuple[int, bool]] = Counter()
    unseen = 0
    rows = decisions.annotate(seconds=WholeSeconds("decided_at", "first_shown_at"))
    found = rows.values_list("person_id", "verdict", "hurried", "seconds").annotate(count=Count("*"))
    for pk, verdict, hurried, took, number in cast("Iterable[Row]", found):
        person = people.setdefault(pk, OfPerson(""))
        if verdict == Verdict.APPROVE:
            person.approved += number
        elif verdict != Verdict.ANSWER:
            person.declined += number
        if took is None:
            unseen += number
        else:
            seconds[max(0, took), hurried] += number
            person.seconds += min(max(0, took), IDLE_SECONDS) * number
    for pk, name in User.objects.filter(pk__in=people).values_list("pk", "username"):
        people[pk].name = name
    return people, Answers(seconds, unseen)


def _add_edited_and_hurried(
    decisions: QuerySet[Decision], tools: dict[str, OfTool], people: dict[int, OfPerson]
) -> None:
    # Few of all decisions, which have indexes of their own.
    for column, which in (("edited", Q(edited_arguments__isnull=False)), ("hurried", Q(hurried=True))):
        rows = decisions.filter(which).values("person_id", "approval__call__tool_name").annotate(count=Count("*"))
        for row in rows:
            # A tool's call may have been made before the period.
            name = row["approval__call__tool_name"]
            for each in (tools.setdefault(name, OfTool(name)), people[row["person_id"]]):
                setattr(each, column, getattr(each, column) + row["count"])
