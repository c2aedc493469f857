import re
from datetime import date, timedelta
from typing import Any, Literal

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
NAMES = DAYS + [day[:3] for day in DAYS]


def parts(text: str, day_first: bool) -> list[int]:
    """Year, month and day as the text has them."""
    words = re.findall(r"[0-9]+|[a-z]+", re.sub(r"(?<=[0-9])(st|nd|rd|th)\b|\bof\b", " ", text.lower()))
    words = [word for word in words if word != "the" and word.capitalize() not in NAMES]
    named = [word for word in words if word.isalpha()]
    numbers = [int(word) for word in words if word.isdigit()]
    if len(named) == 1 and named[0][:3] in MONTHS and len(numbers) == 2:
        month = MONTHS.index(named[0][:3]) + 1
        return [numbers[0], month, numbers[1]] if numbers[0] > 31 else [numbers[1], month, numbers[0]]
    if not named and re.fullmatch(r"[0-9]{8}", text.strip()):
        return [int(text.strip()[:4]), int(text.strip()[4:6]), int(text.strip()[6:])]
    if named or len(numbers) != 3:
        raise ValueError(f"cannot read {text!r} as a date; expected something like 31 January 2026 or 2026-01-31")
    if numbers[0] > 31:
        return numbers
    first, second, year = numbers
    if first > 12 or (day_first and second <= 12):
        return [year, second, first]
    return [year, first, second]


def run(text: str, order: Literal["day first", "month first"] = "day first") -> dict[str, Any]:
    """Read a date that a person wrote, such as "31 January 2026" or "1/31/26", and say what day it is.

    Args:
        text: the date in digits or with an English month
        order: what the first number of 3/4/2026 means
    """
    year, month, day = parts(text, order == "day first")
    year += 2000 if year < 70 else 1900 if year < 100 else 0
    try:
        found = date(year, month, day)
    except ValueError:
        raise ValueError(f"{text!r} is no day of the calendar") from None
    if found.year in (1, 9999):
        raise ValueError("the calendar of this tool goes from the year 2 to 9998")
    thursday = found + timedelta(days=3 - found.weekday())  # the week belongs to the year of its Thursday
    return {
        "date": found.isoformat(),
        "weekday": DAYS[found.weekday()],
        "day_of_year": (found - date(year, 1, 1)).days + 1,
        "iso_week": f"{thursday.year}-W{(thursday - date(thursday.year, 1, 1)).days // 7 + 1:02d}",
    }
