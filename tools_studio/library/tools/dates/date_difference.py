from datetime import date, timedelta
from typing import Any


def whole_months(start: date, end: date) -> int:
    """How many whole months fit between the two; the 31st counts as the last day of a shorter month."""
    months = (end.year - start.year) * 12 + end.month - start.month
    return months - 1 if start.day > end.day and not is_last_day(end) else months


def is_last_day(day: date) -> bool:
    return (day.month == 12 and day.day == 31) or (day + timedelta(days=1)).month != day.month


def run(start: date, end: date) -> dict[str, Any]:
    """Say how far apart two days are, in days, weeks, months and years.

    Args:
        start: the first day
        end: the other day; when it is earlier, the difference is negative
    """
    sign = -1 if end < start else 1
    first, last = (end, start) if end < start else (start, end)
    days = (last - first).days
    months = whole_months(first, last)
    return {
        "days": sign * days,
        "weeks": f"{days // 7} weeks and {days % 7} days",
        "whole_months": sign * months,
        "whole_years": sign * (months // 12),
    }
