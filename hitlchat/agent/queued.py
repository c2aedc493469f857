"""Messages said while a run goes on: each begins a run of its own, in their order, once the one before is done.

After a run that failed or was stopped none begins by itself: the person sends it, or takes it back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import transaction

from hitlchat.agent import runs
from hitlchat.agent.attachments import keeping
from hitlchat.agent.models import Attachment, Message, QueuedMessage, RunStatus
from hitlchat.agent.runs import Claim, Gone, RunActive
from hitlchat.base.problems import Conflict

MOST: Final = 20


class QueueFull(Conflict):
    """A message too many: so many wait already that nobody could mean one more."""

    def __init__(self) -> None:
        super().__init__(f"{MOST} messages are already queued. Take one back, or wait until the next one is sent.")


@dataclass(frozen=True)
class TakenBack:
    """A message that is not sent any more, with its files, which belong to the draft again."""

    content: str
    attachments: list[Attachment]


def add(conversation_id: UUID, content: str, attached: Sequence[UUID] = ()) -> QueuedMessage:
    """Keep a message until the run is done. Raises: QueueFull, Gone, BadAttachments."""
    with runs.holding(conversation_id) as held:
        if held.queued.count() >= MOST:
            raise QueueFull
        rows = keeping.claim(held, attached)
        message = held.queued.create(content=content)
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


def begin_next(conversation_id: UUID, *, whatever: bool = False) -> tuple[Message, Claim] | None:
    """Begin a run for the first that waits, claimed by this process; None if there is none to begin.

    whatever: also after a run that failed or was stopped.
    """
    # Most often there is none: the conversation need not be locked to see that.
    if not QueuedMessage.objects.filter(conversation_id=conversation_id).exists():
        return None
    try:
        with runs.holding(conversation_id) as held:
            row = held.queued.first()
            is_done = held.tip is not None and held.tip.status == RunStatus.DONE
            if row is None or not (is_done or whatever) or not held.owner.is_active:
                return None
            attached = list(row.attachments.all())
            row.delete()
            run = runs.begin(held, held.tip)
            message = runs.say(held, run, row.content, attached)
    except (Gone, RunActive):
        return None
    return message, Claim(run.pk, held.pk, run.owner)


def ready() -> list[UUID]:
    """Return the conversations in which one could begin: a process that died may not have come to it."""
    rows = QueuedMessage.objects.filter(conversation__tip__status=RunStatus.DONE, conversation__deleted_at=None)
    return list(rows.order_by().values_list("conversation_id", flat=True).distinct())
