"""Drives runs in this process: one task for each claimed run, a heartbeat for their leases, and the sweeper.

Messages said while a run goes on are queued: each begins a run of its own, in their order, once the one before is
done.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from hitlchat.agent import branches, runs, second, titles, transcript, writing
from hitlchat.agent.attachments import keeping
from hitlchat.agent.loop import advance
from hitlchat.agent.models import Attachment, Conversation, Message, QueuedMessage, RunStatus
from hitlchat.agent.runs import Claim, Gone, RunActive, SaidBefore
from hitlchat.base import database, tracing
from hitlchat.base.background import Worker, background
from hitlchat.base.database import in_db
from hitlchat.base.problems import Conflict
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.gate import perform
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import delegation
from hitlchat.gate.settling import sweep
from hitlchat.gate.status import SETTLED, Status

SWEEP_SECONDS = 2.0
# A call bears the time of its move, and shows only when that is committed.
LATE_COMMIT = timedelta(minutes=2)
ANSWERED = frozenset({Status.APPROVED, Status.DECLINED, Status.ANSWERED, Status.EXPIRED, Status.WITHDRAWN})
ENDED = frozenset({Status.SUCCEEDED, Status.FAILED})
# Messages that wait in one conversation.
MOST: Final = 20

_driving: dict[Claim, asyncio.Task[Any]] = {}


class QueueFull(Conflict):
    sentence = translatable(f"{MOST} messages are already queued. Take one back, or wait until the next one is sent.")


@dataclass(frozen=True)
class TakenBack:
    """A message that is not sent any more, with its files, which belong to the draft again."""

    content: str
    attachments: list[Attachment]


def say(conversation: Conversation, content: str, key: str = "", attached: Sequence[UUID] = ()) -> tuple[Message, UUID]:
    """Store what the user says and let the assistant begin; nothing more where `key` has said it before.

    Raises: RunActive while a run goes on, KeyReused, BadAttachments.
    """
    try:
        message, claim = runs.start(conversation, content, key, attached)
    except SaidBefore as before:
        return before.message, before.run_id
    start(claim)
    writing.tell_soon(conversation.pk, "message", message=str(message.pk))
    return message, claim.run_id


def queue(conversation: Conversation, content: str, attached: Sequence[UUID] = ()) -> None:
    """Queue a message for after the current run. Raises: QueueFull, Gone, BadAttachments."""
    enqueue(conversation.pk, content, attached)
    # The run may have ended just before.
    if not go_on(conversation.pk):
        writing.tell_soon(conversation.pk, "queued")


def enqueue(conversation_id: UUID, content: str, attached: Sequence[UUID] = ()) -> QueuedMessage:
    """Keep a message until the run is done. Raises: QueueFull, Gone, BadAttachments."""
    with runs.holding(conversation_id) as locked:
        if locked.queued.count() >= MOST:
            raise QueueFull
        rows = keeping.claim(locked, attached)
        message = locked.queued.create(content=content)
        for place, row in enumerate(rows):
            row.queued, row.place = message, place
            row.save(update_fields=["queued", "place"])
    return message


def take_back(conversation_id: UUID, message_id: UUID) -> TakenBack | None:
    """Return the message, which is not sent any more; None: it was sent, or taken back before."""
    with transaction.atomic():
        row = QueuedMessage.objects.select_for_update().filter(conversation_id=conversation_id, pk=message_id).first()
        if row is None:
            return None
        attached = list(row.attachments.all())
        row.delete()
    return TakenBack(row.content, attached)


def go_on(conversation_id: UUID, *, whatever: bool = False) -> bool:
    """Start the next queued message once the last run is done, or after `whatever` run; False if there is none.

    After a run that failed or was stopped none begins by itself: the person sends it, or takes it back.
    """
    # Most often there is none: the conversation need not be locked to see that.
    if not _queued(conversation_id).exists():
        return False
    try:
        with runs.holding(conversation_id) as locked:
            row = locked.queued.first()
            is_done = locked.tip is not None and locked.tip.status == RunStatus.DONE
            if row is None or not (is_done or whatever) or not locked.owner.is_active:
                return False
            attached = list(row.attachments.all())
            row.delete()
            run = runs.begin(locked, locked.tip)
            message = runs.say(locked, run, row.content, attached)
    except (Gone, RunActive):
        return False
    start(Claim(run.pk, locked.pk, run.owner))
    writing.tell_soon(conversation_id, "message", message=str(message.pk))
    writing.tell_soon(conversation_id, "queued")
    return True


def retry(conversation: Conversation, *, without_images: bool = False) -> UUID:
    """Have the assistant work once more on what was said last; the id of the run.

    Raises: RunActive, NothingToRetry, Gone.
    """
    claim = runs.retry(conversation, without_images=without_images)
    start(claim)
    writing.tell_soon(conversation.pk, "resync" if without_images else "run")
    return claim.run_id


def instead(
    conversation: Conversation,
    run_id: UUID,
    content: str | None,
    attached: Sequence[UUID] | None = None,
    *,
    without_images: bool = False,
) -> UUID:
    """Say `content` in place of what the run began with, or the same again; the id of the run that works on it.

    Raises: RunActive, NoSuchVersion, Gone, BadAttachments.
    """
    claim = branches.instead(conversation.pk, run_id, content, attached, without_images=without_images)
    start(claim)
    writing.tell_soon(conversation.pk, "resync")
    return claim.run_id


def stop(run_id: UUID, conversation_id: UUID, actor: Actor, *, why: str = runs.BY_THE_PERSON) -> bool:
    """End a run; False if it was over already."""
    stopped = runs.stop(run_id, actor, written=writing.so_far(run_id), why=why)
    # An agent's is stopped within a transaction.
    database.after_commit(background.spawn, _abandon, run_id)
    database.after_commit(writing.tell_soon, conversation_id, "resync")
    return stopped


def start(claim: Claim, *, begins: bool = True) -> None:
    """Work on a run in this process; not `begins`: on one that another process, or this one, has left."""
    background.spawn(_drive, claim, begins)


def heartbeat() -> Worker:
    """Say in time, again and again, that this process still has its runs and executes its calls."""
    every = settings.LEASE_SECONDS / 3
    return Worker("heartbeat", _beat, every, longest=every)


def sweeper() -> Worker:
    """Look for what is over, left behind by others, or settled while no server ran."""
    # None until a sweep has seen what happened while no server ran.
    last: datetime | None = None

    async def look() -> None:
        nonlocal last
        last = await in_db(_sweep)(last)

    return Worker("sweeper", look, SWEEP_SECONDS)


async def let_go() -> None:
    """Stop driving; each run is handed back for another process, or for this one after its restart."""
    # A call that settles from now on wakes its run in the next process.
    background.leaving = True
    tasks = list(_driving.values())
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=5)


def on_move(
    *, call_id: UUID, status: Status, asked_again: bool, conversation_id: UUID | None, turn_id: UUID | None, **_: Any
) -> None:
    if second.switch.on and status == Status.WAITING:
        background.spawn(second.read, call_id)
    if conversation_id is not None:
        writing.tell_soon(conversation_id, "call", call=str(call_id), turn=str(turn_id), status=status.value)
    if turn_id is not None and (status in ANSWERED or (asked_again and status == Status.WAITING)):
        runs.refresh_status(turn_id)
    if conversation_id is not None:
        _tell_those_above(conversation_id, call_id, status)
    if turn_id is not None and status in SETTLED:
        _wake(turn_id)
    if conversation_id is not None:
        _follow(conversation_id, call_id, status)


def on_stop_requested(*, call_id: UUID, conversation_id: UUID | None, turn_id: UUID | None, **_: Any) -> None:
    if conversation_id is not None:
        status = Status.EXECUTING.value
        writing.tell_soon(conversation_id, "call", call=str(call_id), turn=str(turn_id), status=status)


@compiled
def _queued(conversation_id: UUID) -> QuerySet[QueuedMessage]:
    return QueuedMessage.objects.filter(conversation_id=conversation_id)


async def _abandon(run_id: UUID) -> None:
    """Leave a run that was stopped at once, and not when its next step finds out."""
    for claim, task in list(_driving.items()):
        if claim.run_id == run_id and not await in_db(claim.rows().exists)():
            task.cancel()


async def _drive(claim: Claim, begins: bool) -> None:
    task = asyncio.current_task()
    assert task is not None
    _driving[claim] = task
    try:
        with tracing.work(claim.run_id, claim.conversation_id, begins=begins):
            await advance(claim)
    except asyncio.CancelledError:
        await asyncio.shield(in_db(runs.release)(claim))
        raise
    finally:
        del _driving[claim]
    if not background.leaving:
        background.spawn(titles.give, claim.conversation_id)
    await in_db(_next)(claim.conversation_id)


def _next(conversation_id: UUID) -> None:
    if not background.leaving:
        go_on(conversation_id)


async def _beat() -> None:
    await in_db(perform.beat)()
    claims = list(_driving)
    own = await in_db(runs.renew)(claims) if claims else set()
    for claim in claims:
        if claim.run_id not in own and claim in _driving:
            _driving[claim].cancel()


def _sweep(last: datetime | None) -> datetime:
    begun = database.now()
    sweep()
    for claim in runs.claim_lapsed([claim.token for claim in list(_driving)]):
        start(claim, begins=False)
    for turn_id in runs.parked_but_settled(last and last - LATE_COMMIT):
        _wake(turn_id)
    # A process that died may not have come to what was queued.
    queued = QueuedMessage.objects.filter(conversation__tip__status=RunStatus.DONE, conversation__deleted_at=None)
    for conversation_id in queued.order_by().values_list("conversation_id", flat=True).distinct():
        _next(conversation_id)
    return begun


def _wake(turn_id: UUID) -> None:
    if background.running and not background.leaving and (claim := runs.wake(turn_id)) is not None:
        start(claim, begins=False)


def _follow(conversation_id: UUID, call_id: UUID, status: Status) -> None:
    """Go on with what the call kept waiting in its conversation, and say there what became of it."""
    if status in ANSWERED:
        # There is room for one that was held back.
        for waiting in runs.held_back(conversation_id):
            _wake(waiting)
    if status in ENDED and (note := transcript.correct(call_id)) is not None:
        writing.tell_soon(conversation_id, "message", message=str(note.pk))


def _tell_those_above(conversation_id: UUID, call_id: UUID, status: Status) -> None:
    """Have the runs that wait for an agent know whether it waits for a person, and their pages show what it does."""
    for step in delegation.steps(conversation_id):
        if step.above_id is None or step.call.turn_id is None:
            continue
        runs.refresh_status(step.call.turn_id)
        # Twice: for the cards and counts, and for the line of the agent.
        writing.tell_soon(step.above_id, "call", call=str(call_id), turn="", status=status.value)
        line = {"call": str(step.call_id), "turn": str(step.call.turn_id), "status": Status.EXECUTING.value}
        writing.tell_soon(step.above_id, "call", **line)
