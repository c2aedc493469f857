"""Retention: whole batches that are old enough lose their events, and keep their seals. There is no other deletion."""

import logging
from datetime import timedelta

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from hitlchat.gate.actor import Actor
from hitlchat.gate.models import AuditEvent, Drop, Seal
from hitlchat.gate.transition import note
from hitlchat.record import keys, rows
from hitlchat.record.seals import DROP, within
from hitlchat.record.signing import sign

logger = logging.getLogger(__name__)

DROPPED = "record.dropped"


def drop(days: int, actor: Actor) -> int:
    """Drop the events of all batches sealed more than `days` days ago; how many batches. BadKey, OtherKey.

    A batch whose gaps may still be filled stays, and so does all after it.
    """
    newest = Seal.objects.order_by("-number").first()
    if newest is None:
        return 0
    old = Seal.objects.filter(drop=None, sealed_at__lt=timezone.now() - timedelta(days=days), number__lt=newest.watch)
    numbers = list(old.order_by("number").values_list("number", flat=True))
    late = {event_id: seal.number for seal in Seal.objects.exclude(late=[]).iterator() for event_id in seal.late}
    dropped = [number for number in numbers if _dropped(number, late, days, actor)]
    if dropped:
        logger.warning("Batches %s to %s of the record were dropped: older than %s days", numbers[0], numbers[-1], days)
    return len(dropped)


def _dropped(number: int, late: dict[int, int], days: int, actor: Actor) -> bool:
    """One batch: its events go, its drop is signed and recorded, all of it or nothing."""
    private = keys.own()
    key = keys.enrolled(private)
    batch = Seal.objects.get(pk=number)
    made = Drop(seal=batch, dropped_at=timezone.now(), key=key)
    made.signature = sign(private, DROP, rows.body_of_drop(made, batch))
    try:
        with transaction.atomic():
            # What the database asks for before it lets an event of this batch go.
            made.save(force_insert=True)
            _delete(batch, late)
            said = {"batch": number, "seal": batch.hash, "first": batch.first, "last": batch.last, "days": days}
            note(None, DROPPED, actor=actor, data={**said, "events": batch.count})
    except IntegrityError:
        # Another process was first.
        return False
    return True


def _delete(batch: Seal, late: dict[int, int]) -> None:
    """Past the model, which knows no way. What another batch has, and what nobody sealed, stays."""
    ids = AuditEvent.objects.filter(pk__range=(batch.first, batch.last)).values_list("pk", flat=True)
    own = (event_id for event_id in ids if not within(event_id, batch.gaps))
    gone = [(event_id,) for event_id in (*batch.late, *own) if late.get(event_id, batch.number) == batch.number]
    with connection.cursor() as cursor:
        cursor.executemany("DELETE FROM gate_auditevent WHERE id = %s", gone)
