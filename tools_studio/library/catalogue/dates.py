"""Days, weeks and time zones."""

from typing import Any

from tools_studio.library.catalogue.shipped import pure

_SHARED: dict[str, Any] = {"group": "dates", "category": "Date/Time"}

DATES = (
    pure(
        "get_current_time",
        "Get current time",
        "Read the clock in {args.timezone}",
        {"timezone": "Europe/Berlin"},
        capabilities={"now": True},
        tags=("clock", "time zones"),
        **_SHARED,
    ),
    pure(
        "change_zone",
        "Change time zone",
        "Change the time zone (moment: {args.moment}, from_zone: {args.from_zone}, to_zone: {args.to_zone})",
        {"moment": "2026-03-29T09:30:00", "from_zone": "Europe/Berlin", "to_zone": "Asia/Tokyo"},
        tags=("time zones",),
        **_SHARED,
    ),
    pure(
        "read_date", "Read date", "Read the date {args.text}", {"text": "31 January 2026"}, tags=("parse",), **_SHARED
    ),
    pure(
        "date_difference",
        "Date difference",
        "Tell the difference of the dates (start: {args.start}, end: {args.end})",
        {"start": "2026-01-31", "end": "2026-12-24"},
        tags=("calendar",),
        **_SHARED,
    ),
    pure(
        "add_to_date",
        "Add to date",
        "Add to the date (start: {args.start}, months: {args.months}, days: {args.days})",
        {"start": "2026-01-31", "months": 1, "days": 10},
        tags=("calendar",),
        **_SHARED,
    ),
    pure(
        "count_working_days",
        "Count working days",
        "Count the working days from {args.start} to {args.end}",
        {"start": "2026-12-01", "end": "2026-12-31", "holidays": ["2026-12-25"]},
        tags=("calendar", "office"),
        **_SHARED,
    ),
    pure(
        "show_month",
        "Show month",
        "Show month {args.month} of the year {args.year}",
        {"year": 2026, "month": 12},
        tags=("calendar",),
        **_SHARED,
    ),
    pure(
        "next_weekday",
        "Next weekday",
        "Tell the next weekday (weekday: {args.weekday}, after: {args.after}, count: {args.count})",
        {"weekday": "Monday", "after": "2026-01-31", "count": 4},
        tags=("calendar",),
        **_SHARED,
    ),
)
