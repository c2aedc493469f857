from datetime import date, timedelta
from typing import Annotated, Literal

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def run(
    weekday: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    after: date,
    count: Annotated[int, {"minimum": 1, "maximum": 104}] = 1,
    every: Annotated[int, {"minimum": 1, "maximum": 52}] = 1,
) -> list[str]:
    """List the dates of a weekday that come after a day, such as the next four Mondays.

    Args:
        weekday: which day of the week
        after: the day after which to look; it is not itself in the list
        count: how many dates
        every: 2 for every second week
    """
    ahead = (DAYS.index(weekday) - after.weekday() - 1) % 7 + 1
    try:
        return [(after + timedelta(days=ahead + 7 * every * n)).isoformat() for n in range(count)]
    except (OverflowError, TypeError):  # the interpreter says the latter
        raise ValueError("the calendar of this tool ends with the year 9999") from None
