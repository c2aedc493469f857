"""A call with unknown outcome: a person found out what happened and says so."""

from typing import Literal
from uuid import UUID

from hitlchat.gate.actor import Actor
from hitlchat.gate.decide import AlreadySettled, NoSuchApproval
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import StaleCall, move


def resolve(call_id: UUID, outcome: Literal["done", "failed"], actor: Actor) -> ToolCall:
    """Mark an unknown call as done or failed. NoSuchApproval: not theirs. AlreadySettled: no longer unknown."""
    call = ToolCall.objects.filter(pk=call_id).first()
    if call is None or not (actor.is_person and call.caller_id == actor.user_id):
        raise NoSuchApproval("There is no call with this id for you to resolve.")
    if call.status != Status.UNKNOWN:
        raise AlreadySettled(call)
    marked = {"kind": "marked", "message": "It did not happen, as a person found out afterwards.", "line": None}
    try:
        if outcome == "done":
            return move(call, Status.SUCCEEDED, actor=actor, data={"marked": outcome})
        return move(call, Status.FAILED, actor=actor, data={"marked": outcome}, error=marked)
    except StaleCall:
        raise AlreadySettled(ToolCall.objects.get(pk=call_id)) from None
