"""Totals over the whole record: kept up to a mark, and counted from there.

Derived from the record alone, so that every decision counts once, wherever it was made, and every process at any time
tells the same. Events are committed in another order than their ids say: only such are folded into what is kept as are
old enough that none can appear before them any more. What is behind the mark is counted anew each time.
"""

from datetime import timedelta

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from hitlchat.gate.models import AuditEvent
from hitlchat.telemetry.counting import Totals, count
from hitlchat.telemetry.models import Mark, Total

# No transaction of ours stays open for longer.
LATE_COMMIT = timedelta(minutes=2)
# So many events behind the mark are counted faster than folded, unless they are as old as this: old ones may be dropped
# from the record some day, and what was counted stays.
FEW = 1000
OLD = timedelta(hours=1)


def read() -> Totals:
    """The totals as of now. Whoever reads them keeps them short, which changes nothing about what is read."""
    with transaction.atomic():
        mark = _locked()
        if (until := _settled_until()) - mark.event_id > FEW or _has_old(mark):
            _fold(mark, until)
        totals = count(AuditEvent.objects.filter(pk__gt=mark.event_id))
        for name, labels, value in Total.objects.values_list("name", "labels", "value"):
            totals[name, labels] += value
    return totals


def _locked() -> Mark:
    Mark.objects.get_or_create(pk=1)
    return Mark.objects.select_for_update().get(pk=1)


def _settled_until() -> int:
    """The last event that nothing can appear before any more; 0 if there is none."""
    old = AuditEvent.objects.filter(at__lt=timezone.now() - LATE_COMMIT)
    # The latest by time are among the latest by id.
    latest = old.order_by("-at").values("pk")[:1]
    found: int | None = AuditEvent.objects.filter(pk__in=latest).aggregate(latest=Max("pk"))["latest"]
    return found or 0


def _has_old(mark: Mark) -> bool:
    """Whether the first event behind the mark is old."""
    first = AuditEvent.objects.filter(pk__gt=mark.event_id).order_by("pk").values_list("at", flat=True).first()
    return first is not None and first < timezone.now() - OLD


def _fold(mark: Mark, until: int) -> None:
    totals = count(AuditEvent.objects.filter(pk__gt=mark.event_id, pk__lte=until))
    rows = [Total(name=name, labels=labels) for name, labels in totals]
    Total.objects.bulk_create(rows, ignore_conflicts=True)
    for (name, labels), value in totals.items():
        Total.objects.filter(name=name, labels=labels).update(value=F("value") + value)
    mark.event_id = until
    mark.save(update_fields=["event_id"])
