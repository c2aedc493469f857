"""`calendar`, and `zones` for time zones: the objects of `zoneinfo` cannot go into a tool, moments can."""

import calendar
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from hitlchat.sandbox.helpers.module import HelperModule


def monthrange(year: int, month: int) -> tuple[int, int]:
    first, days = calendar.monthrange(year, month)
    return int(first), days


def weekday(year: int, month: int, day: int) -> int:
    return int(calendar.weekday(year, month, day))


def convert(moment: datetime, zone: str) -> datetime:
    """The same moment on the clocks of `zone`. ValueError: `moment` has no zone of its own."""
    if _moment(moment).tzinfo is None:
        raise ValueError("convert() takes a moment with a time zone: zones.attach(moment, zone) gives it one")
    return moment.astimezone(_zone(zone))


def attach(moment: datetime, zone: str, fold: int = 0) -> datetime:
    """The moment when the clocks of `zone` show `moment`; with `fold=1` the later one, where they show it twice.

    ValueError: they never show it.
    """
    if _moment(moment).tzinfo is not None:
        raise ValueError("attach() takes a moment without a time zone: zones.convert(moment, zone) changes the zone")
    if fold not in (0, 1):
        raise ValueError("attach() takes fold=0 or fold=1")
    attached = moment.replace(tzinfo=_zone(zone), fold=fold)
    if attached.astimezone(UTC).astimezone(_zone(zone)).replace(tzinfo=None, fold=0) != moment.replace(fold=0):
        raise ValueError(f"{moment:%Y-%m-%d %H:%M:%S} does not exist in {zone}: the clocks are put forward over it")
    return attached


def offset(moment: datetime, zone: str) -> timedelta:
    """How far the clocks of `zone` are ahead of UTC at that moment."""
    return convert(moment, zone).utcoffset() or timedelta()


def abbreviation(moment: datetime, zone: str) -> str:
    """What people there call their time at that moment, such as CEST."""
    return convert(moment, zone).tzname() or ""


def names(prefix: str = "") -> list[str]:
    """The names of all zones that begin with `prefix`, sorted."""
    return [name for name in _all_names() if name.startswith(prefix)]


@cache
def _all_names() -> list[str]:
    return sorted(available_timezones())


def _moment(value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError(f"zones take a datetime, not {type(value).__name__}")
    return value


def _zone(name: Any) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError, AttributeError):
        raise ValueError(f"{name!r} is no time zone name such as Europe/Berlin") from None


DAYS = "MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY"
CALENDAR = HelperModule(
    "calendar",
    {
        "isleap": calendar.isleap,
        "leapdays": calendar.leapdays,
        "monthcalendar": calendar.monthcalendar,
        "monthrange": monthrange,
        "timegm": calendar.timegm,
        "weekday": weekday,
    },
    """def isleap(year: int) -> bool: ...
def leapdays(y1: int, y2: int) -> int: ...
def monthcalendar(year: int, month: int) -> list[list[int]]: ...
def monthrange(year: int, month: int) -> tuple[int, int]: ...
def timegm(tuple: tuple[int, ...]) -> int: ...
def weekday(year: int, month: int, day: int) -> int: ...
day_abbr: list[str]
day_name: list[str]
month_abbr: list[str]
month_name: list[str]
"""
    + "".join(f"{day}: int\n" for day in DAYS.split()),
    {
        **{day: number for number, day in enumerate(DAYS.split())},
        **{name: list(getattr(calendar, name)) for name in ("day_abbr", "day_name", "month_abbr", "month_name")},
    },
)
ZONES = HelperModule(
    "zones",
    {"abbreviation": abbreviation, "attach": attach, "convert": convert, "names": names, "offset": offset},
    '''import datetime

def abbreviation(moment: datetime.datetime, zone: str) -> str:
    """What people in `zone` call their time at that moment, such as CEST."""
def attach(moment: datetime.datetime, zone: str, fold: int = 0) -> datetime.datetime:
    """The moment when the clocks of `zone` show `moment`, which has no zone of its own."""
def convert(moment: datetime.datetime, zone: str) -> datetime.datetime:
    """The same moment on the clocks of `zone`."""
def names(prefix: str = "") -> list[str]:
    """The names of all zones that begin with `prefix`, such as Europe/."""
def offset(moment: datetime.datetime, zone: str) -> datetime.timedelta:
    """How far the clocks of `zone` are ahead of UTC at that moment."""
''',
)
