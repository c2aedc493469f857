from datetime import date
from typing import Any


def run(start: date, end: date, holidays: list[date] = []) -> dict[str, Any]:
    """Count the days from Monday to Friday between two days, both included.

    Args:
        start: the first day
        end: the last day
        holidays: days off, which do not count
    """
    if end < start:
        raise ValueError("the last day is before the first")
    total = (end - start).days + 1
    weeks, rest = total // 7, total % 7
    working = weeks * 5 + len([n for n in range(rest) if (start.weekday() + n) % 7 < 5])
    off = len({day for day in holidays if start <= day <= end and day.weekday() < 5})
    return {"working_days": working - off, "weekend_days": total - working, "holidays": off, "all_days": total}
