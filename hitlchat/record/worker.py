"""The worker of the record: seals what is settled, notes the last seal beside the database, drops old batches."""

import asyncio
import json
import logging
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from hitlchat.base import append_only
from hitlchat.base.background import Worker
from hitlchat.base.database import in_db
from hitlchat.gate import tools
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import AuditEvent, Drop, Seal
from hitlchat.gate.transition import note
from hitlchat.record import keys, rows
from hitlchat.record.keys import BadKey, OtherKey
from hitlchat.record.proofs import DROP, sign, within
from hitlchat.record.sealing import MOST, seal, seal_all

DROPPED: Final = "record.dropped"
RETENTION_SECONDS: Final = 3600.0
BOLTS_OFF: Final = (
    "Not all triggers that keep the record from being changed are on: “manage.py migrate” puts them on again."
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Mark:
    number: int
    hash: str


class BadMark(ValueError):
    """The file is there and cannot be read."""


def file() -> Path:
    return Path(settings.DATA_DIR) / "record_mark"


def last_mark() -> Mark | None:
    """Return the seal that was noted last beside the database; None if none was.

    Raises: BadMark
    """
    try:
        mark = json.loads(file().read_text(encoding="ascii"))
        return Mark(int(mark["number"]), str(mark["hash"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise BadMark(f"{file()} cannot be read; delete it if you know why.") from error


def advance() -> Mark | None:
    """Note the last seal, and return None; or return the one noted before, if it is missing in the record.

    Raises: BadMark
    """
    before = last_mark()
    if before is not None and file().stat().st_mode & 0o077:
        # Written by a version that let others read it.
        file().chmod(0o600)
    if before is not None and not Seal.objects.filter(pk=before.number, hash=before.hash).exists():
        return before
    last = Seal.objects.order_by("-number").first()
    if last is not None and (before is None or last.number > before.number):
        with keys.private_file(file(), replace=True) as handle:
            handle.write(json.dumps({"number": last.number, "hash": last.hash}).encode("ascii"))
    return None


def drop(days: int, actor: Actor) -> int:
    """Drop the events of all batches sealed more than `days` days ago, and return how many batches.

    A batch whose gaps may still be filled stays, and so does all after it. Raises: BadKey, OtherKey
    """
    newest = Seal.objects.order_by("-number").first()
    if newest is None:
        return 0
    old = Seal.objects.filter(drop=None, sealed_at__lt=timezone.now() - timedelta(days=days), number__lt=newest.watch)
    numbers = list(old.order_by("number").values_list("number", flat=True))
    late = rows.late_batches()
    dropped = [number for number in numbers if _dropped(number, late, days, actor)]
    if dropped:
        tools.state_again()
        logger.warning("Batches %s to %s of the record were dropped: older than %s days", numbers[0], numbers[-1], days)
    return len(dropped)


def _dropped(number: int, late: dict[int, int], days: int, actor: Actor) -> bool:
    """Drop one batch: its events go, its drop is signed and recorded, all of it or nothing."""
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
            data = {"batch": number, "seal": batch.hash, "first": batch.first, "last": batch.last, "days": days}
            note(None, DROPPED, actor=actor, data={**data, "events": batch.count})
    except IntegrityError:
        # Another process was first.
        return False
    return True


def _delete(batch: Seal, late: dict[int, int]) -> None:
    """Delete the events of a batch, which the model cannot; those of other batches or of none stay."""
    ids = AuditEvent.objects.filter(pk__range=(batch.first, batch.last)).values_list("pk", flat=True)
    own = (event_id for event_id in ids if not within(event_id, batch.gaps))
    gone = [(event_id,) for event_id in (*batch.late, *own) if late.get(event_id, batch.number) == batch.number]
    with connection.cursor() as cursor:
        cursor.executemany("DELETE FROM gate_auditevent WHERE id = %s", gone)


class RecordWorker:
    """Seals and drops for one process: an event is sealed once it was there at the look before."""

    def __init__(self) -> None:
        self._seen = 0
        self._said = ""
        self._dropped_at = -RETENTION_SECONDS
        self._has_key = False

    def look(self, now: float) -> None:
        """Seal and drop what is due; `now`: seconds of a clock that only goes forward."""
        try:
            if not self._has_key:
                # At the start, and not only once there is something to seal.
                keys.enrolled(keys.own())
                self._has_key = True
                if append_only.missing():
                    self._complain(BOLTS_OFF)
            self._seal()
            if lost := advance():
                self._complain(f"Seal {lost.number} was here and is not in the record any more: see docs/record.md.")
            elif settings.HITL_RECORD_DAYS and now - self._dropped_at >= RETENTION_SECONDS:
                self._dropped_at = now
                drop(settings.HITL_RECORD_DAYS, SYSTEM)
        except (BadKey, OtherKey, BadMark) as error:
            self._complain(str(error))

    def _seal(self) -> None:
        seen, self._seen = self._seen, rows.newest_id()
        while _is_due(seen) and seal(up_to=seen) is not None:
            continue

    def _complain(self, words: str) -> None:
        # Once, and not at every look.
        if words != self._said:
            self._said = words
            logger.error("%s", words)


def _is_due(seen: int) -> bool:
    """Return whether it is due: not what another process has just sealed most of, unless that makes a whole batch."""
    last = Seal.objects.order_by("-number").first()
    if last is None:
        return seen > 0
    pause = timedelta(seconds=settings.HITL_RECORD_SECONDS / 2)
    # A clock that was set back makes it a time to come.
    return bool(seen - last.last >= MOST or abs(timezone.now() - last.sealed_at) >= pause)


async def work() -> None:
    """Seal, note and drop for the server process; ends only by being cancelled."""
    # What a process before left, which may have died; and this one may die as soon.
    await seal_rest()
    worker, clock = RecordWorker(), asyncio.get_running_loop().time

    async def look() -> None:
        await in_db(worker.look)(clock())

    await Worker("record", look, settings.HITL_RECORD_SECONDS).work()


async def seal_rest() -> None:
    """Seal at once, whoever was to do it: when a server starts, and when it has ended everything else."""
    try:
        await in_db(seal_all)()
    except (BadKey, OtherKey, DatabaseError):
        logger.exception("What was left of the record could not be sealed; it is tried again")
