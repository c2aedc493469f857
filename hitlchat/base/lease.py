"""Leases: how long a process may be silent before others count its work as abandoned, by the database's clock."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

# A time further ahead than a lease can reach was written before the clock was set back; statements take their time.
SLACK: Final = timedelta(seconds=1)


def length() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)


def renewed() -> CombinedExpression:
    """Return when a lease taken now ends, for the database to work out."""
    return Now() + length()


def is_older(age: timedelta) -> Q:
    """Return the condition for rows made longer ago; also for those that a clock set back has left in the future."""
    return Q(created_at__lt=Now() - age) | Q(created_at__gt=Now() + SLACK)


class Leases:
    """Finds leases that have lapsed, as one observer sees them.

    A clock set back leaves leases far in the future: they lapse once nobody has renewed them for the length of a lease.
    Holders renew them three times in that time, so that none is taken from a process that lives.
    """

    def __init__(self, field: str = "lease_until", longest: Callable[[], timedelta] = length) -> None:
        self._field, self._longest = field, longest
        self._since: dict[tuple[Any, datetime], float] = {}

    def lapsed(self, rows: QuerySet[Any, Any], most: int) -> list[tuple[Any, Q]]:
        """Return the keys of `rows` whose leases have lapsed, each with the condition that it still has."""
        past = Q((f"{self._field}__lt", Now()))
        over = [(pk, past) for pk in rows.filter(past).order_by(self._field).values_list("pk", flat=True)[:most]]
        far = rows.filter(**{f"{self._field}__gt": Now() + self._longest() + SLACK})
        now, longest = uptime(), self._longest().total_seconds()
        self._since = {key: self._since.get(key, now) for key in far.values_list("pk", self._field)[:most]}
        stranded = [key for key, since in self._since.items() if now - since >= longest]
        return over + [(pk, Q((self._field, until))) for pk, until in stranded]


def is_young(since: float) -> bool:
    """Return whether a lease taken at this `uptime` cannot have lapsed, as not half of its length has gone by."""
    return uptime() - since < length().total_seconds() / 2


def uptime() -> float:
    """Return seconds of a clock that nobody sets, which also runs while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
