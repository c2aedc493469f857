"""How many questions may be open at once, so that nobody is flooded into answering unread (SR-41)."""

from uuid import UUID

from django.conf import settings
from django.db import connection

from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status

TOO_MANY_HERE = "As many questions are open in this conversation as may be. Let some of them be answered first."
TOO_MANY = "As many questions are open for this person as may be. Let some of them be answered first."
# With these a call is refused by no policy.
REASONS = (TOO_MANY_HERE, TOO_MANY)
# Tells its locks from those of others in the database.
LOCKS = 0x6869746C


def reason(caller_id: int, conversation_id: UUID | None) -> str:
    """Why no further question may be opened; empty if one may. Within the transaction that opens it: until that ends
    nobody else opens one for the same person, so that the limits hold exactly."""
    if is_full(caller_id, conversation_id):
        return TOO_MANY_HERE
    return "" if _left(settings.HITL_MAX_WAITING_PER_CALLER, caller_id=caller_id) else TOO_MANY


def is_full(caller_id: int, conversation_id: UUID | None) -> bool:
    """Whether this conversation has as many open questions as it may; within the transaction that would open one."""
    _lock(caller_id)
    return room(caller_id, conversation_id) < 1


def room(caller_id: int, conversation_id: UUID | None) -> int:
    """How many more questions may be opened in this conversation, as of now; without one there is always room."""
    if conversation_id is None:
        return 1
    most = settings.HITL_MAX_WAITING_PER_CONVERSATION
    return _left(most, caller_id=caller_id, conversation_id=conversation_id)


def _left(most: int, **whose: object) -> int:
    # No more are counted than matter.
    return most - ToolCall.objects.order_by().filter(status=Status.WAITING, **whose)[:most].count()


def _lock(caller_id: int) -> None:
    """On SQLite whoever writes has the database for themselves already."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCKS, caller_id])
