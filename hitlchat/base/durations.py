"""Spans of time as people say them."""

from datetime import datetime
from typing import Final

from django.utils.translation import ngettext

UNITS: Final = ((86400, ""), (3600, "h"), (60, "min"))


def about(seconds: float) -> str:
    """Return a span in one unit."""
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
