from datetime import date, timedelta
from typing import Annotated, Any

MONTHS = "January February March April May June July August September October November December".split()


def week(day: date) -> int:
    """The ISO week: it belongs to the year of its Thursday."""
    thursday = day + timedelta(days=3 - day.weekday())
    return (thursday - date(thursday.year, 1, 1)).days // 7 + 1


def run(
    year: Annotated[int, {"minimum": 2, "maximum": 9998}], month: Annotated[int, {"minimum": 1, "maximum": 12}]
) -> dict[str, Any]:
    """Draw the calendar of a month with its ISO week numbers.

    Args:
        year: the year, such as 2026
        month: the month from 1 to 12
    """
    first = date(year, month, 1)
    length = (date(year + month // 12, month % 12 + 1, 1) - first).days
    cells = ["  "] * first.weekday() + [f"{day:2d}" for day in range(1, length + 1)]
    lines = []
    for start in range(0, len(cells), 7):
        day = date(year, month, max(1, start - first.weekday() + 1))
        lines.append(f"W{week(day):02d}  " + " ".join(cells[start : start + 7]))
    title = f"{MONTHS[month - 1]} {year}"
    return {"title": title, "days": length, "text": "\n".join([title, "     Mo Tu We Th Fr Sa Su", *lines])}
