"""The days that insights are about, in the installation's time zone."""

from dataclasses import dataclass
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
        """Where the first day begins."""
        return timezone.make_aware(datetime.combine(self.days[0], time()))
