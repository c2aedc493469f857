"""Days, weeks and time zones."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.tables import each_row
from tests.tools_studio.library.world import BY_NAME, World, fault, result, shown


@each_row(
    "text, order, date",
    [
        ("31 January 2026", "day first", "2026-01-31"),
        ("Jan 31st, 2026", "day first", "2026-01-31"),
        ("Monday, the 2nd of March 2026", "day first", "2026-03-02"),
        ("2026-1-31", "month first", "2026-01-31"),
        ("20260131", "day first", "2026-01-31"),
        ("3/4/2026", "day first", "2026-04-03"),
        ("3/4/2026", "month first", "2026-03-04"),
        ("1/31/26", "day first", "2026-01-31"),
        ("31.1.1999", "month first", "1999-01-31"),
    ],
)
def test_dates_are_read_as_people_write_them(world: World, text: str, order: str, date: str) -> None:
    assert result(world.call("read_date", text=text, order=order))["date"] == date


@each_row(
    "text, weekday, week, number",
    [
        ("2026-12-31", "Thursday", "2026-W53", 365),
        ("2027-01-01", "Friday", "2026-W53", 1),
        ("2024-12-30", "Monday", "2025-W01", 365),
        ("2024-02-29", "Thursday", "2024-W09", 60),
    ],
)
def test_a_week_belongs_to_the_year_of_its_thursday(
    world: World, text: str, weekday: str, week: str, number: int
) -> None:
    found = result(world.call("read_date", text=text))
    assert (found["weekday"], found["iso_week"], found["day_of_year"]) == (weekday, week, number)


@each_row("text", ["", "soon", "31.2.2026", "30 February", "1 2", "2026-13-01", "1.1.9999"])
def test_what_is_no_date_is_refused(world: World, text: str) -> None:
    assert fault(world.call("read_date", text=text)).startswith("ValueError: ")


@each_row(
    "start, end, expected",
    [
        ("2026-01-31", "2026-12-24", {"days": 327, "weeks": "46 weeks and 5 days", "whole_months": 10}),
        ("2024-02-29", "2025-02-28", {"days": 365, "whole_months": 12, "whole_years": 1}),
        ("2026-03-01", "2026-01-31", {"days": -29, "whole_months": -1, "whole_years": 0}),
        ("2026-01-01", "2026-01-01", {"days": 0, "weeks": "0 weeks and 0 days", "whole_months": 0}),
        ("0001-01-01", "9999-12-31", {"days": 3652058, "whole_years": 9998}),
    ],
)
def test_a_difference_is_told_in_days_weeks_and_months(
    world: World, start: str, end: str, expected: dict[str, Any]
) -> None:
    assert shown(world.call("date_difference", start=start, end=end), expected) == expected


def test_a_day_that_does_not_exist_is_no_argument(world: World) -> None:
    with pytest.raises(ValueError, match="2026-02-30"):
        world.call("date_difference", start="2026-02-30", end="2026-03-01")


@each_row(
    "start, more, date",
    [
        ("2026-01-31", {"months": 1}, "2026-02-28"),
        ("2024-02-29", {"years": 1}, "2025-02-28"),
        ("2026-03-31", {"months": -1, "days": -1}, "2026-02-27"),
        ("2026-12-31", {"weeks": 1, "days": 1}, "2027-01-08"),
        ("2026-12-15", {"months": 12}, "2027-12-15"),
    ],
)
def test_months_end_where_they_end(world: World, start: str, more: dict[str, int], date: str) -> None:
    assert result(world.call("add_to_date", start=start, **more))["date"] == date


@each_row("start, more", [("9998-12-31", {"years": 1}), ("0001-01-01", {"days": -1}), ("0001-01-01", {"months": -1})])
def test_the_calendar_has_two_ends(world: World, start: str, more: dict[str, int]) -> None:
    assert "from the year 1 to 9998" in fault(world.call("add_to_date", start=start, **more))


@each_row(
    "start, end, holidays, working",
    [
        ("2026-12-01", "2026-12-31", ["2026-12-25", "2026-12-26", "2027-01-01"], 22),
        ("2026-01-31", "2026-02-01", [], 0),
        ("2026-02-02", "2026-02-02", ["2026-02-02", "2026-02-02"], 0),
        ("2026-01-01", "2026-12-31", [], 261),
    ],
)
def test_weekends_and_holidays_are_no_working_days(
    world: World, start: str, end: str, holidays: list[str], working: int
) -> None:
    found = result(world.call("count_working_days", start=start, end=end, holidays=holidays))
    assert found["working_days"] == working
    assert found["working_days"] + found["weekend_days"] + found["holidays"] == found["all_days"]


def test_working_days_go_forward(world: World) -> None:
    assert "before the first" in fault(world.call("count_working_days", start="2026-02-01", end="2026-01-31"))


def test_a_month_is_drawn_with_its_weeks(world: World) -> None:
    lines = result(world.call("show_month", year=2026, month=2))["text"].splitlines()
    assert lines[0] == "February 2026"
    assert lines[1:3] == ["     Mo Tu We Th Fr Sa Su", "W05                     1"]
    assert lines[-1] == "W09  23 24 25 26 27 28"


def test_a_leap_year_has_one_day_more_and_the_week_of_new_year_may_be_the_old_one(world: World) -> None:
    assert [result(world.call("show_month", year=year, month=2))["days"] for year in (1900, 2000, 2024)] == [28, 29, 29]
    assert "W53               1  2  3" in result(world.call("show_month", year=2027, month=1))["text"]
    assert result(world.call("show_month", year=9998, month=12))["days"] == 31


@each_row("year, month", [(1, 1), (2026, 13), (9999, 12)])
def test_a_month_outside_the_calendar_is_no_argument(world: World, year: int, month: int) -> None:
    with pytest.raises(Exception, match=r"minimum|maximum"):
        world.call("show_month", year=year, month=month)


@each_row(
    "arguments, dates",
    [
        ({"weekday": "Monday", "after": "2026-01-31", "count": 2}, ["2026-02-02", "2026-02-09"]),
        ({"weekday": "Monday", "after": "2026-02-02"}, ["2026-02-09"]),
        ({"weekday": "Sunday", "after": "2026-01-31", "count": 2, "every": 2}, ["2026-02-01", "2026-02-15"]),
    ],
)
def test_the_next_weekday_comes_after_the_day(world: World, arguments: dict[str, Any], dates: list[str]) -> None:
    assert result(world.call("next_weekday", **arguments)) == dates


def test_there_is_no_weekday_after_the_last_day(world: World) -> None:
    assert "year 9999" in fault(world.call("next_weekday", weekday="Monday", after="9999-12-28"))


def test_the_time_is_that_of_the_zone(world: World) -> None:
    assert result(world.call("get_current_time", timezone="Europe/Berlin")) == {
        "timezone": "Europe/Berlin", "date": "2026-02-01", "time": "00:30:00", "weekday": "Sunday",
    }  # fmt: skip
    assert result(world.call("get_current_time"))["time"] == "23:30:00"


# One of each set of rules; the slow test below looks at every zone.
CITIES = ["Europe/London", "America/New_York", "Australia/Adelaide", "Pacific/Auckland", "Asia/Kathmandu", "UTC"]


@each_row("start, goal", [*pairwise(CITIES), ("UTC", "Europe/London")])
def test_a_time_in_another_zone_is_what_the_time_zone_database_says(world: World, start: str, goal: str) -> None:
    first = datetime(2025, 1, 1, 12)  # noqa: DTZ001
    days = [
        first + timedelta(days=n, hours=n % 24) for n in (0, 87, 88, 89, 91, 182, 273, 276, 278, 297, 298, 306, 455)
    ]
    for here in days:
        expected = here.replace(tzinfo=ZoneInfo(start)).astimezone(ZoneInfo(goal))
        found = result(world.call("change_zone", moment=here.isoformat(), from_zone=start, to_zone=goal))
        assert (found["moment"], found["weekday"]) == (f"{expected:%Y-%m-%dT%H:%M:%S}", f"{expected:%A}")


@pytest.mark.slow("looks at every zone")
def test_every_zone_of_the_tool_is_in_the_database_with_the_same_rules(world: World) -> None:
    cities = re.findall(r"\b[A-Z]\w+/[\w/]+", BY_NAME["change_zone"].source.split("}")[0])
    assert len(set(cities)) == len(cities) > 75
    for city in cities:
        for month in (1, 7):
            there = datetime(2026, month, 15, 12, tzinfo=UTC).astimezone(ZoneInfo(city))
            found = world.call("change_zone", moment=f"2026-{month:02d}-15T12:00:00", from_zone="utc", to_zone=city)
            assert result(found)["moment"] == f"{there:%Y-%m-%dT%H:%M:%S}", city


@each_row(
    "moment, note, there",
    [
        ("2026-03-29T02:30:00", "there is no such time", "2026-03-29T01:30:00"),
        ("2026-10-25T02:30:00", "the first of two", "2026-10-25T00:30:00"),
        ("2026-10-25T03:30:00", "", "2026-10-25T02:30:00"),
    ],
)
def test_the_hours_when_clocks_change_have_a_note(world: World, moment: str, note: str, there: str) -> None:
    found = result(world.call("change_zone", moment=moment, from_zone="Europe/Berlin", to_zone="UTC"))
    assert (note in found["note"], bool(note), found["moment"]) == (True, bool(found["note"]), there)


@each_row(
    "moment, zone, words",
    [
        ("2026-01-31T10:00:00", "Mars/Base", "not among the time zones"),
        ("2026-01-31T10:00:00Z", "UTC", "without Z"),
        ("2022-12-31T10:00:00", "UTC", "from 2023 to 2099"),
    ],
)
def test_a_time_that_cannot_be_told_is_refused(world: World, moment: str, zone: str, words: str) -> None:
    assert words in fault(world.call("change_zone", moment=moment, from_zone=zone, to_zone="Asia/Tokyo"))
