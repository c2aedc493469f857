"""Who may decide which approvals. The person on whose behalf the call was made, and nobody else."""

from django.db.models import QuerySet

from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.status import Status


def may_decide(actor: Actor, call: ToolCall) -> bool:
    return actor.is_person and call.caller_id == actor.user_id


def seen_by(user_id: int) -> QuerySet[Approval]:
    """The approvals this person may look at and decide, waiting or settled."""
    return Approval.objects.select_related("call").filter(call__caller_id=user_id)


def waiting_for(user_id: int) -> QuerySet[Approval]:
    return seen_by(user_id).filter(call__status=Status.WAITING)
