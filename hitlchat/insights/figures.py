"""The figures that insights show for a period, and what follows from them by plain arithmetic."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Final

from django.utils import timezone

# As it stands in the address, how many days, and in words.
PERIODS: Final = {"7d": (7, "7 days"), "4w": (28, "4 weeks"), "3m": (91, "3 months")}
USUAL: Final = "4w"


@dataclass(frozen=True)
class Period:
    """Whole days up to and with today."""

    key: str
    today: date

    @classmethod
    def of(cls, key: str) -> "Period":
        """Anything unknown means the usual one."""
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


# A yes that took longer was interrupted by something else: no more than this counts as time that asking took.
IDLE_SECONDS: Final = 120
# Where the columns of the picture begin, in seconds.
BINS: Final = (0, 2, 5, 15, 30, 60, 120, 300)
BIN_NAMES: Final = (
    "under 2 s", "2 to 5 s", "5 to 15 s", "15 to 30 s", "30 to 60 s", "1 to 2 min", "2 to 5 min", "later",
)  # fmt: skip
SATURDAY: Final = 5


@dataclass
class Tally:
    """Questions, by what became of them; those that are missing were withdrawn, or wait."""

    asked: int = 0
    approved: int = 0
    declined: int = 0
    expired: int = 0

    @property
    def answered(self) -> int:
        return self.approved + self.declined


@dataclass
class OfTool:
    """`source` is empty for a tool that is gone. `risk`: the highest with which it was called."""

    name: str
    tally: Tally = field(default_factory=Tally)
    unasked: int = 0
    risk: int = 0
    edited: int = 0
    hurried: int = 0
    source: str = ""


@dataclass
class OfPerson:
    """`seconds`: what asking took of their time."""

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
class Why:
    """A reason of the latest calls that ran unasked, and how many there are."""

    reason: str
    count: int


@dataclass(frozen=True)
class Answers:
    """Answers by whole seconds, and by whether they count as hurried; `unseen`: without a recorded
    display.
    """

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
        passed, half = 0, (self.count + 1) // 2
        for (seconds, _), count in sorted(self.seconds.items()):
            passed += count
            if passed >= half:
                return seconds
        return None

    @property
    def spent(self) -> int:
        """Seconds of people's time, each answer up to where it was surely interrupted."""
        return sum(cost(seconds) * count for (seconds, _), count in self.seconds.items())

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
    """`tools` and `people`: those with most questions and answers first. `whys` are of the latest calls only."""

    period: Period
    days: dict[date, Tally]
    tools: list[OfTool]
    people: list[OfPerson]
    answers: Answers
    whys: list[Why]

    @property
    def total(self) -> Tally:
        every = self.days.values()
        return Tally(
            *(sum(getattr(day, name) for day in every) for name in ("asked", "approved", "declined", "expired"))
        )

    @property
    def unasked(self) -> int:
        return sum(tool.unasked for tool in self.tools)

    @property
    def expired_at_weekends(self) -> int:
        return sum(tally.expired for day, tally in self.days.items() if day.weekday() >= SATURDAY)

    @property
    def is_empty(self) -> bool:
        return not (self.total.asked or self.unasked or self.answers.count or self.answers.unseen)


def cost(seconds: int) -> int:
    return min(seconds, IDLE_SECONDS)
