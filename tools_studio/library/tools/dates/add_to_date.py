from datetime import date, timedelta
from typing import Annotated, Any

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def days_in(year: int, month: int) -> int:
    after = date(year + month // 12, month % 12 + 1, 1)
    return (after - date(year, month, 1)).days


def run(
    start: date,
    years: Annotated[int, {"minimum": -1000, "maximum": 1000}] = 0,
    months: Annotated[int, {"minimum": -12000, "maximum": 12000}] = 0,
    weeks: Annotated[int, {"minimum": -50000, "maximum": 50000}] = 0,
    days: Annotated[int, {"minimum": -366000, "maximum": 366000}] = 0,
) -> dict[str, Any]:
    """Count forward or back from a day; 31 January plus one month is the last day of February.

    Args:
        start: the day to count from
        years: how many years later, negative for earlier
        months: how many months later
        weeks: how many weeks later
        days: how many days later
    """
    count = start.year * 12 + start.month - 1 + years * 12 + months
    year, month = count // 12, count % 12 + 1
    if not 1 <= year <= 9998:
        raise ValueError("the calendar of this tool goes from the year 1 to 9998")
    day = min(start.day, days_in(year, month))
    try:
        found = date(year, month, day) + timedelta(days=weeks * 7 + days)
    except (OverflowError, TypeError):  # the interpreter says the latter
        raise ValueError("the calendar of this tool goes from the year 1 to 9998") from None
    return {"date": found.isoformat(), "weekday": DAYS[found.weekday()]}
