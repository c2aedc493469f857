"""Days and moments that somebody wrote, in a range that is safe to compute with in any time zone; and spans of time as
people say them.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import ngettext

# Every clock is less than a day ahead of another one, and a whole day ends with the next.
FIRST: Final = datetime(1, 1, 3, tzinfo=UTC)
LAST: Final = datetime(9999, 12, 29, tzinfo=UTC)
# In seconds; days have words of their own.
UNITS: Final = ((86400, ""), (3600, "h"), (60, "min"))


def beginning(day: date) -> datetime:
    """Return where the day begins in the server's time zone. Raises: ValueError, if it is out of range."""
    if not FIRST.date() < day < LAST.date():
        raise ValueError(f"{day} is too far from today")
    return timezone.make_aware(datetime.combine(day, time()))


def end(day: date) -> datetime:
    """Return where the day ends, which is where the next one begins. Raises: ValueError, as `beginning` does."""
    return beginning(day + timedelta(days=1) if day < LAST.date() else day)


def read(text: str, of_day: Callable[[date], datetime] | None = None, *, zoned: bool = True) -> datetime | None:
    """Return a moment in ISO 8601, or what `of_day` makes of a day; None if the text is neither, or out of range.

    `zoned`: without a time zone it is none, rather than one of the server's.
    """
    try:
        if of_day is not None and "T" not in text and (day := parse_date(text)):
            return of_day(day)
        found = parse_datetime(text)
        if found and not found.tzinfo:
            found = None if zoned else timezone.make_aware(found)
    except (ValueError, OverflowError):
        return None
    return found if found and FIRST < found < LAST else None


def about(seconds: float) -> str:
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f}".removesuffix(".0") + " s"
    if seconds < 90:
        return f"{round(seconds)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600)} h"


def span(seconds: float) -> str:
    """Return a span in its two largest units; below ten seconds with a tenth, below one in milliseconds."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    parts = []
    for size, unit in UNITS:
        count, whole = divmod(whole, size)
        if count:
            words = unit or ngettext("day", "days", count)
            parts.append(f"{count} {words}")
    parts += [f"{whole} s"] if whole else []
    return " ".join(parts[:2])


def between(earlier: datetime | None, later: datetime | None) -> str:
    """Empty while one of them is not there."""
    return span((later - earlier).total_seconds()) if earlier and later else ""
