"""Which batch an event is sealed in."""

from collections.abc import Iterable

from django.db.models import OuterRef, Subquery

from hitlchat.gate.models import AuditEvent, Seal
from hitlchat.record.seals import within


def batches_of(ids: Iterable[int]) -> dict[int, int]:
    """By event; one that is not sealed yet is left out. In two statements, or three where one came late."""
    by_id = Seal.objects.filter(last__gte=OuterRef("pk")).order_by("last").values("number")[:1]
    rows = AuditEvent.objects.filter(pk__in=list(ids)).order_by().annotate(number=Subquery(by_id))
    found = {event_id: number for event_id, number in rows.values_list("pk", "number") if number is not None}
    gaps = dict(Seal.objects.filter(pk__in=set(found.values())).exclude(gaps=[]).values_list("pk", "gaps"))
    in_gaps = {event_id for event_id, number in found.items() if within(event_id, gaps.get(number, []))}
    if in_gaps:
        first = min(found[event_id] for event_id in in_gaps)
        found = {event_id: number for event_id, number in found.items() if event_id not in in_gaps}
        for number, late in Seal.objects.filter(pk__gt=first).exclude(late=[]).values_list("pk", "late"):
            found |= dict.fromkeys(in_gaps.intersection(late), number)
    return found
