"""Several people have to say yes. Each yes is counted under a lock on the call: none is lost, and one is the last."""

from typing import Any

from django.db.models import F, Q, QuerySet

from hitlchat.base.database import durable
from hitlchat.base.problems import Conflict
from hitlchat.gate import deciders
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, Decision, ToolCall, Verdict
from hitlchat.gate.status import Status
from hitlchat.gate.transition import StaleCall, remark

COUNTED = "call.counted"
TAKEN_BACK = "call.yes_taken_back"


class AlreadyCounted(Conflict):
    """The same person said yes to this before."""

    def __init__(self, yes: int, quorum: int) -> None:
        super().__init__(f"You approved this already: {yes} of {quorum} people have. It needs somebody else's yes too.")


def add(decision: Decision, actor: Actor, *, only_if: Q, data: dict[str, Any]) -> bool:
    """Keep this yes; whether it is the last one that the call needs. Within the transaction that then moves the call.

    AlreadyCounted. StaleCall: the call waits no longer, or `only_if` does not hold.
    """
    approval = decision.approval
    call = approval.call
    _lock(call, only_if)
    own = {"approval": approval, "person_id": decision.person_id, "round": decision.round}
    if not (is_known := Decision.objects.filter(**own).exists()):
        decision.save(force_insert=True)
    yes = deciders.counted(approval=approval).count()
    # Also of one said before: somebody whose yes did not count for a time may be back.
    if yes >= call.quorum:
        return True
    if is_known:
        raise AlreadyCounted(yes, call.quorum)
    remark(call, COUNTED, actor=actor, data={**data, "yes": yes, "quorum": call.quorum})
    return False


def replace(decision: Decision) -> None:
    """Replace an earlier yes of who now declines, before the others have said theirs."""
    if decision.approval.call.quorum > 1:
        _own(decision.approval.call, decision.person_id).delete()


def take_back(call: ToolCall, actor: Actor) -> bool:
    """Undo the own yes to a call that waits for more of them; False if it does not, or there is none."""
    if call.status != Status.WAITING or actor.user_id is None:
        return False
    with durable():
        try:
            _lock(call, Q())
        except StaleCall:
            return False
        rows = _own(call, actor.user_id)
        digest = rows.values_list("digest", flat=True).first()
        if digest is None:
            return False
        rows.delete()
        data = {"approval": str(call.approval.pk), "digest": digest}
        remark(call, TAKEN_BACK, actor=actor, data=data | {"yes": deciders.counted(approval=call.approval).count()})
    return True


def is_reached(approval: Approval, call: ToolCall) -> bool:
    """Return whether as many people as were to be asked said yes to what was asked last."""
    shown = approval.disclosure.get("whoDecides") or {}
    yes = approval.decisions.filter(verdict=Verdict.APPROVE, round=call.round)
    return yes.count() >= max(call.quorum, int(shown.get("quorum", 1)))


def _own(call: ToolCall, user_id: int) -> QuerySet[Decision]:
    yes = Decision.objects.filter(approval__call=call, person_id=user_id, round=call.round)
    return yes.filter(verdict=Verdict.APPROVE)


def _lock(call: ToolCall, only_if: Q) -> None:
    """Lock the call until the transaction ends; by a write, in which `only_if` is judged last."""
    rows = ToolCall.objects.filter(only_if, pk=call.pk, status=call.status, round=call.round)
    if rows.update(quorum=F("quorum")) != 1:
        raise StaleCall(f"call {call.pk} is no longer {call.status!r}")
