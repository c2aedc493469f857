"""An approval is taken back while its call has not started: of that and the start, exactly one happens."""

from uuid import UUID

from hitlchat.base.database import durable
from hitlchat.gate import quorum, stopping
from hitlchat.gate.actor import Actor
from hitlchat.gate.decide import NOT_YOURS, AlreadySettled, NoSuchApproval
from hitlchat.gate.grants import giving
from hitlchat.gate.models import Approval, Decision, ToolCall, Verdict
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.transition import StaleCall, move

WHY = "the approval was taken back before the call started"


class TooLate(AlreadySettled):
    """The call started, or came to nothing, before that; `call` holds it, and the message says which."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(call)
        self.args = (_sentence(call),)


def take_back(call_id: UUID, actor: Actor) -> ToolCall:
    """Withdraw a call that `actor` approved and that has not started, and any grant given with it; one that waits for
    more people's yes goes on to wait, without theirs. NoSuchApproval, TooLate.
    """
    call = ToolCall.objects.filter(pk=call_id).first()
    if call is None or not _approved_by(call, actor):
        raise NoSuchApproval(NOT_YOURS)
    if quorum.take_back(call, actor):
        return call
    # The last yes may have come just then.
    call.refresh_from_db()
    if call.status != Status.APPROVED:
        raise TooLate(call)
    try:
        with durable():
            move(call, Status.WITHDRAWN, actor=actor, data={"reason": WHY}, reason=f"Not run: {WHY}.")
            giving.revoke_given_with(call_id, actor)
    except StaleCall as stale:
        raise TooLate(ToolCall.objects.get(pk=call_id)) from stale
    return call


def take_back_approval(approval_id: UUID, actor: Actor) -> ToolCall:
    """The same, by the id of the approval."""
    found = Approval.objects.filter(pk=approval_id).values_list("call_id", flat=True).first()
    if found is None:
        raise NoSuchApproval(NOT_YOURS)
    return take_back(found, actor)


def _approved_by(call: ToolCall, actor: Actor) -> bool:
    yes = Decision.objects.filter(approval__call=call, person_id=actor.user_id, verdict=Verdict.APPROVE)
    return actor.is_person and yes.exists()


def _sentence(call: ToolCall) -> str:
    status = Status(call.status)
    if status == Status.WAITING:
        return "The call has not run: it is being asked about again. Decline it there."
    if status == Status.EXECUTING:
        how = " You can stop it." if stopping.can_stop(call) else " It cannot be stopped."
        return f"Too late to take it back: the call started already.{how}"
    if status in SETTLED and call.started_at is not None:
        return f"Too late to take it back: the call started already. How it ended: {status.label.lower()}."
    return f"There is nothing to take back: the call was not run. It is {status.label.lower()}."
