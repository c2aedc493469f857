"""Messages that a program may send again without saying them twice: by its Idempotency-Key, for a day."""

from datetime import timedelta
from typing import Final

from django.db.models.functions import Now

from hitlchat.agent.models import Conversation, Message, SentMessage
from hitlchat.base import canonical

KEPT: Final = timedelta(hours=24)


class KeyReused(ValueError):
    """The key came with another message before."""

    def __init__(self) -> None:
        super().__init__("This key was sent with another message within the last 24 hours: take a new one.")


class SaidBefore(Exception):
    """The same message came with its key before: `message`, which began the run `run_id`."""

    def __init__(self, message: Message) -> None:
        super().__init__("This message was said already.")
        assert message.run_id is not None
        self.message, self.run_id = message, message.run_id


def check(conversation: Conversation, content: str, key: str) -> None:
    """Let pass what is said for the first time; without a key, everything.

    Raises: SaidBefore, KeyReused.
    """
    rows = SentMessage.objects.filter(owner_id=conversation.owner_id, key=key, made_at__gt=Now() - KEPT)
    found = rows.select_related("message").first() if key else None
    if found is None:
        return
    if found.digest != _digest(conversation, content):
        raise KeyReused
    raise SaidBefore(found.message)


def keep(conversation: Conversation, content: str, key: str, message: Message) -> None:
    """Remember what was said with this key; within the transaction that says it. IntegrityError: it was just used."""
    mine = SentMessage.objects.filter(owner_id=conversation.owner_id)
    mine.filter(made_at__lte=Now() - KEPT).delete()
    mine.create(
        owner_id=conversation.owner_id, key=key, digest=_digest(conversation, content), message=message, made_at=Now()
    )


def _digest(conversation: Conversation, content: str) -> str:
    return canonical.sha256([str(conversation.pk), content])
