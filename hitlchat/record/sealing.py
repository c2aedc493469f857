"""Sealing: what is settled of the record becomes a batch with a signature, chained to the batch before.

Events are recorded as ever; nothing here locks them. On PostgreSQL ids are handed out before commits, so an event may
come to light below one that is sealed already: it is named as late in the next batch. Which batches that may still
happen to is known exactly. Whoever has an id has begun a transaction before, so the gaps of a batch are final once no
transaction is left that began before it was sealed (`watch`). Of any number of processes that seal, the one whose seal
gets the next number is the one that has.
"""

import secrets
from datetime import datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from hitlchat.gate.models import AuditEvent, RecordKey, Seal
from hitlchat.record import keys, proofs, rows
from hitlchat.record.proofs import FORM, SEAL, Row, gaps_in, hash_of, mark_of, sign

MOST = 1000
# By so much the clocks of a process and the database may differ.
SLACK = timedelta(minutes=5)


def seal(up_to: int | None = None) -> Seal | None:
    """Seal the next batch: at most MOST events with ids up to `up_to`, and what came late.

    Returns None if there are none, or another process seals them just now. A row that cannot be read is sealed as such.
    Raises: BadKey, OtherKey
    """
    private = keys.own()
    before = Seal.objects.order_by("-number").first()
    # Before the events are read: who has ended by now, and has committed, is seen then.
    oldest = _oldest_transaction()
    since = before.last if before else 0
    late = _late(before) if before else []
    fresh = rows.read(Q(pk__gt=since), *([Q(pk__lte=up_to)] if up_to is not None else []), most=MOST)
    if not (late or fresh):
        return None
    made = _made(before, late, fresh, oldest)
    return made if _signed(made, keys.enrolled(private), private) else None


def seal_all() -> int:
    """Seal everything that is there, and return how many batches this process made of it."""
    count, last = 0, rows.newest_id()
    while True:
        if seal(up_to=last) is not None:
            count += 1
        elif not AuditEvent.objects.filter(pk__gt=_sealed_up_to(), pk__lte=last).exists():
            return count


def oldest_unsealed() -> datetime | None:
    """Return when the first event happened that is in no batch yet; None if all are sealed."""
    sealed = Seal.objects.order_by("-number").values("last")[:1]
    rest = AuditEvent.objects.filter(pk__gt=Coalesce(Subquery(sealed), 0)).order_by("pk")
    return rest.values_list("at", flat=True).first()


def unsealed_seconds() -> float:
    """Return how old that one is; 0 if all are sealed."""
    at = oldest_unsealed()
    return max(0.0, (timezone.now() - at).total_seconds()) if at is not None else 0.0


def is_overdue(seconds: float) -> bool:
    """Return whether an event that is so old should have been sealed: a server does so within two intervals."""
    return seconds > 3 * settings.HITL_RECORD_SECONDS


def _sealed_up_to() -> int:
    return Seal.objects.order_by("-number").values_list("last", flat=True).first() or 0


def _made(before: Seal | None, late: list[Row], fresh: list[Row], oldest: datetime | None) -> Seal:
    number, since = (before.number + 1, before.last) if before else (1, 0)
    last = fresh[-1]["id"] if fresh else since
    made = Seal(
        number=number,
        first=since + 1,
        last=last,
        count=len(late) + len(fresh),
        gaps=gaps_in([row["id"] for row in fresh], since + 1, last),
        late=[row["id"] for row in late],
        watch=_watch(before, number, oldest),
        salt=secrets.token_hex(32),
        format=FORM,
        previous=before.hash if before else "",
    )
    hashes = [rows.hashed(row, made) for row in (*late, *fresh)]
    made.root, made.marks = proofs.root(hashes).hex(), "".join(map(mark_of, hashes))
    return made


def _signed(made: Seal, key: RecordKey, private: Ed25519PrivateKey) -> bool:
    """Return whether it got its number."""
    made.key = key
    body = rows.body_of(made)
    made.hash, made.signature = hash_of(body), sign(private, SEAL, body)
    try:
        with transaction.atomic():
            made.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def _late(before: Seal) -> list[Row]:
    """Return what is now where there was a gap, and in no batch yet."""
    watched = list(Seal.objects.filter(number__gte=before.watch).values_list("gaps", "late"))
    sealed = {event_id for _, late in watched for event_id in late}
    gaps = rows.in_ranges([each for gaps, _ in watched for each in gaps])
    found = [row for where in gaps for row in rows.read(where)]
    return sorted((row for row in found if row["id"] not in sealed), key=lambda row: int(row["id"]))


def _watch(before: Seal | None, number: int, oldest: datetime | None) -> int:
    """Return the first batch whose gaps may yet be filled by a transaction that is not over."""
    if before is None or oldest is None:
        return number
    candidates = Seal.objects.filter(number__gte=before.watch, sealed_at__gte=oldest - SLACK)
    return candidates.order_by("number").values_list("number", flat=True).first() or number


def _oldest_transaction() -> datetime | None:
    """Return when the oldest one began that is not over; None where no id is handed out before its turn to commit."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT min(xact_start) FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        (oldest,) = cursor.fetchone()
    return oldest or timezone.now()
