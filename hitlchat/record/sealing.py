"""Sealing: settled events of the record become a signed batch, chained to the batch before. And dropping old batches.

Events are recorded as ever; nothing here locks them. On PostgreSQL ids are handed out before commits, so an event may
come to light below one that is sealed already: it is named as late in the next batch. Which batches that may still
happen to is known exactly. Whoever has an id has begun a transaction before, so the gaps of a batch are final once no
transaction is left that began before it was sealed (`watch`). Of any number of processes that seal, the one whose seal
gets the next number is the one that has.

The worker of each server seals, notes the last seal beside the database, and drops old batches.
"""

import asyncio
import json
import logging
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import F, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest

from hitlchat.base import append_only, canonical, database
from hitlchat.base.background import Worker
from hitlchat.base.database import in_db
from hitlchat.gate import tools
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import AuditEvent, Drop, Seal
from hitlchat.gate.transition import note
from hitlchat.record import keys, proofs, rows
from hitlchat.record.keys import BadKey, OtherKey
from hitlchat.record.proofs import DROP, FORM, SEAL, Row, gaps_in, mark_of, sign, within

MOST: Final = 1000
# By so much the database's clock, which seals and transactions are dated by, may be set back.
SLACK: Final = timedelta(minutes=5)
DROPPED: Final = "record.dropped"
RETENTION_SECONDS: Final = 3600.0
BOLTS_OFF: Final = (
    "Not all triggers that protect the record from changes are installed. Run “manage.py migrate” to "
    "install them again."
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Mark:
    number: int
    hash: str


class BadMark(ValueError):
    """The file of the mark is there and cannot be read."""


def seal(up_to: int | None = None) -> Seal | None:
    """Seal the next batch: at most MOST events with ids up to `up_to`, and those that came late.

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
    made.key = keys.enrolled(private)
    body = rows.body_of(made)
    made.hash, made.signature = canonical.sha256(body), sign(private, SEAL, body)
    try:
        with transaction.atomic():
            made.save(force_insert=True)
    except IntegrityError:
        return None
    return made


def seal_all() -> int:
    """Seal all events, and return the number of batches that this process made."""
    count, last = 0, rows.newest_id()
    while True:
        if seal(up_to=last) is not None:
            count += 1
        elif not _unsealed().filter(pk__lte=last).exists():
            return count


def unsealed_seconds() -> float:
    """Return how old the oldest event is that is in no batch yet; 0 if all are sealed."""
    now = database.now()
    last = Seal.objects.filter(sealed_at__lte=now).order_by("-number").values("sealed_at")[:1]
    # It came after the last seal, however far behind the clock of the process is that recorded it.
    since = _unsealed().annotate(since=Greatest("at", Coalesce(Subquery(last), F("at")))).order_by("pk")
    oldest = since.values_list("since", flat=True).first()
    return max(0.0, (now - oldest).total_seconds()) if oldest is not None else 0.0


def is_overdue(seconds: float) -> bool:
    """Return whether an event that is so old should have been sealed: a server does so within two intervals."""
    return seconds > 3 * settings.HITL_RECORD_SECONDS


def mark_file() -> Path:
    return Path(settings.DATA_DIR) / "record_mark"


def last_mark() -> Mark | None:
    """Return the seal that was noted last beside the database; None if none was.

    Raises: BadMark
    """
    try:
        mark = json.loads(mark_file().read_text(encoding="ascii"))
        return Mark(int(mark["number"]), str(mark["hash"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise BadMark(f"{mark_file()} cannot be read. Delete it if you know why.") from error


def advance() -> Mark | None:
    """Note the last seal, and return None; or return the one noted before, if it is missing in the record.

    Raises: BadMark
    """
    before = last_mark()
    if before is not None and mark_file().stat().st_mode & 0o077:
        # Written by a version that let others read it.
        mark_file().chmod(0o600)
    if before is not None and not Seal.objects.filter(pk=before.number, hash=before.hash).exists():
        return before
    last = Seal.objects.order_by("-number").first()
    if last is not None and (before is None or last.number > before.number):
        with keys.private_file(mark_file(), replace=True) as handle:
            handle.write(json.dumps({"number": last.number, "hash": last.hash}).encode("ascii"))
    return None


def drop(days: int, actor: Actor) -> int:
    """Drop the events of all batches sealed more than `days` days ago, and return how many batches.

    A batch whose gaps may still be filled stays, and so does all after it. Raises: BadKey, OtherKey
    """
    newest = Seal.objects.order_by("-number").first()
    if newest is None:
        return 0
    old = Seal.objects.filter(drop=None, sealed_at__lt=database.now() - timedelta(days=days), number__lt=newest.watch)
    numbers = list(old.order_by("number").values_list("number", flat=True))
    late = rows.late_batches()
    dropped = [number for number in numbers if _drop(number, late, days, actor)]
    if dropped:
        tools.state_again()
        logger.warning("Batches %s to %s of the record were dropped: older than %s days", numbers[0], numbers[-1], days)
    return len(dropped)


class RecordWorker:
    """Seals and drops for one process: an event is sealed once it was there at the look before."""

    def __init__(self) -> None:
        self._seen = 0
        self._complaint = ""
        self._dropped_at = -RETENTION_SECONDS
        self._has_key = False

    def look(self, now: float) -> None:
        """Seal and drop batches that are due; `now`: seconds of a clock that only goes forward."""
        try:
            if not self._has_key:
                # At the start, and not only once there is something to seal.
                keys.enrolled(keys.own())
                self._has_key = True
                if append_only.missing():
                    self._complain(BOLTS_OFF)
            seen, self._seen = self._seen, rows.newest_id()
            while _is_due(seen) and seal(up_to=seen) is not None:
                continue
            if lost := advance():
                self._complain(f"Seal {lost.number} is missing from the record. See docs/record.md.")
            elif settings.HITL_RECORD_DAYS and now - self._dropped_at >= RETENTION_SECONDS:
                self._dropped_at = now
                drop(settings.HITL_RECORD_DAYS, SYSTEM)
        except (BadKey, OtherKey, BadMark) as error:
            self._complain(str(error))

    def _complain(self, words: str) -> None:
        # Once, and not at every look.
        if words != self._complaint:
            self._complaint = words
            logger.error("%s", words)


async def work() -> None:
    """Seal, note and drop for the server process; ends only by being cancelled."""
    # A process before may have died and left events; and this one may die as soon.
    await seal_rest()
    worker, clock = RecordWorker(), asyncio.get_running_loop().time

    async def look() -> None:
        await in_db(worker.look)(clock())

    await Worker("record", look, settings.HITL_RECORD_SECONDS).work()


async def seal_rest() -> None:
    """Seal everything at once: when a server starts, and when it has ended everything else."""
    try:
        await in_db(seal_all)()
    except (BadKey, OtherKey, DatabaseError):
        logger.exception("The remaining events of the record could not be sealed; the server will try again")


def _unsealed() -> "QuerySet[AuditEvent]":
    last = Seal.objects.order_by("-number").values("last")[:1]
    return AuditEvent.objects.filter(pk__gt=Coalesce(Subquery(last), 0))


def _made(before: Seal | None, late: list[Row], fresh: list[Row], oldest: datetime | None) -> Seal:
    number, since = (before.number + 1, before.last) if before else (1, 0)
    # The first batch whose gaps may yet be filled by a transaction that is not over.
    watch = None
    if before is not None and oldest is not None:
        candidates = Seal.objects.filter(number__gte=before.watch, sealed_at__gte=oldest - SLACK)
        watch = candidates.order_by("number").values_list("number", flat=True).first()
    last = fresh[-1]["id"] if fresh else since
    made = Seal(
        number=number,
        first=since + 1,
        last=last,
        count=len(late) + len(fresh),
        gaps=gaps_in([row["id"] for row in fresh], since + 1, last),
        late=[row["id"] for row in late],
        watch=number if watch is None else watch,
        salt=secrets.token_hex(32),
        format=FORM,
        previous=before.hash if before else "",
        sealed_at=database.now(),
    )
    hashes = [rows.hashed(row, made) for row in (*late, *fresh)]
    made.root, made.marks = proofs.root(hashes).hex(), "".join(map(mark_of, hashes))
    return made


def _late(before: Seal) -> list[Row]:
    """Return the rows that are now where there was a gap, and in no batch yet."""
    watched = list(Seal.objects.filter(number__gte=before.watch).values_list("gaps", "late"))
    sealed = {event_id for _, late in watched for event_id in late}
    gaps, found = iter([each for gaps, _ in watched for each in gaps]), list[Row]()
    # So many that they are short enough for a statement.
    while some := list(islice(gaps, 50)):
        found += rows.read(reduce(or_, (Q(pk__range=(first, last)) for first, last in some)))
    return sorted((row for row in found if row["id"] not in sealed), key=lambda row: int(row["id"]))


def _oldest_transaction() -> datetime | None:
    """Return when the oldest open transaction began; None where ids are handed out in the order of commits."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(min(xact_start), statement_timestamp()) FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        oldest: datetime = cursor.fetchone()[0]
    return oldest


def _drop(number: int, late: dict[int, int], days: int, actor: Actor) -> bool:
    """Delete the events of one batch, and sign and record that, in one transaction."""
    private = keys.own()
    key = keys.enrolled(private)
    batch = Seal.objects.get(pk=number)
    made = Drop(seal=batch, dropped_at=database.now(), key=key)
    made.signature = sign(private, DROP, rows.body_of_drop(made, batch))
    try:
        with transaction.atomic():
            # The database asks for it before it lets an event of this batch go.
            made.save(force_insert=True)
            ids = AuditEvent.objects.filter(pk__range=(batch.first, batch.last)).values_list("pk", flat=True)
            own = (event_id for event_id in ids if not within(event_id, batch.gaps))
            # Events of other batches or of none stay.
            gone = [(event_id,) for event_id in (*batch.late, *own) if late.get(event_id, number) == number]
            with connection.cursor() as cursor:
                # The model cannot delete one.
                cursor.executemany("DELETE FROM gate_auditevent WHERE id = %s", gone)
            data = {"batch": number, "seal": batch.hash, "first": batch.first, "last": batch.last, "days": days}
            note(None, DROPPED, actor=actor, data={**data, "events": batch.count})
    except IntegrityError:
        # Another process was first.
        return False
    return True


def _is_due(seen: int) -> bool:
    """Return whether to seal: not if another process has just sealed, unless a whole batch is there."""
    last = Seal.objects.order_by("-number").first()
    if last is None:
        return seen > 0
    pause = timedelta(seconds=settings.HITL_RECORD_SECONDS / 2)
    # A clock that was set back makes it a time to come.
    return bool(seen - last.last >= MOST or abs(database.now() - last.sealed_at) >= pause)
