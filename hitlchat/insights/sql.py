"""What the ORM has no words for, on SQLite and on PostgreSQL. None of it calls back into Python for each row."""

from datetime import UTC, date, datetime
from typing import Any, Final

from django.db.models import CharField, Expression, Func, IntegerField
from django.db.models.functions import Cast, Substr
from django.utils import timezone

from hitlchat.gate.status import Status

# Characters of “2026-11-22 14:53:11”: up to the hour, to ten minutes, to the minute.
HOUR, TEN_MINUTES, MINUTE = 13, 15, 16
FILL: Final = "2000-01-01 00:00"

# In the statement itself: of a parameter SQLite does not know in time that the index of what waits is for it.
WAITING: Final = Func(template=f"'{Status.WAITING.value}'", output_field=CharField())

# To group by: for the column itself SQLite would read all there ever was, by the index of outcomes, and not the period.
AS_TEXT: Final = Func("status", template="%(expressions)s || ''", output_field=CharField())


class WholeSeconds(Func):
    """From the second of two moments to the first, rounded down."""

    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> Any:
        # Moments are text there, and Django's own difference is a Python function. Days are to the millisecond.
        template = "CAST((julianday(%(expressions)s)) * 86400 + 0.002 AS INTEGER)"
        return super().as_sql(compiler, connection, template=template, arg_joiner=") - julianday(")

    def as_postgresql(self, compiler: Any, connection: Any, **_: Any) -> Any:
        template = "CAST(FLOOR(EXTRACT(EPOCH FROM (%(expressions)s))) AS INTEGER)"
        return super().as_sql(compiler, connection, template=template, arg_joiner=" - ")


def stretch(column: str, since: datetime) -> Expression:
    """The hour of a moment, in UTC and as text, which both databases have it as; less than an hour where the days of
    the installation's time zone begin within one."""
    return Substr(Cast(column, CharField()), 1, _precision(since))


def day_of(stretched: str) -> date:
    """The local day of a `stretch`."""
    moment = datetime.fromisoformat(stretched + FILL[len(stretched) :]).replace(tzinfo=UTC)
    return timezone.localtime(moment).date()


def _precision(since: datetime) -> int:
    offsets = [int(timezone.localtime(each).utcoffset().total_seconds()) // 60 for each in (since, timezone.now())]  # type: ignore[union-attr]  # aware
    if all(offset % 60 == 0 for offset in offsets):
        return HOUR
    return TEN_MINUTES if all(offset % 10 == 0 for offset in offsets) else MINUTE
