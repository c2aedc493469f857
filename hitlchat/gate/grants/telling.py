"""Tells whoever shows grants that one changed."""

from functools import partial
from uuid import UUID

from django.db import transaction
from django.dispatch import Signal

from hitlchat.gate.models import Grant

# Sent after the commit with grant_id and conversation_id: that of a call it was given with or used for, or None.
grant_changed = Signal()


def tell(grant: Grant, *conversations: UUID | None) -> None:
    for conversation_id in {grant.approval.call.conversation_id, *conversations}:
        transaction.on_commit(partial(_send, grant.pk, conversation_id), robust=True)


def _send(grant_id: UUID, conversation_id: UUID | None) -> None:
    grant_changed.send_robust(sender=Grant, grant_id=grant_id, conversation_id=conversation_id)
