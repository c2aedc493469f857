"""Counting the yeses where several are needed: under a lock on the call, so that none is lost, and one is the last.

In a chain the groups have their turn one after the other: a yes passes the call on to the first group of which none
counts. Whoever said yes for one group says none for another.
"""

from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import QuerySet

from hitlchat.base.problems import Conflict
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import Where
from hitlchat.gate import oversight, transition
from hitlchat.gate.actor import Actor
from hitlchat.gate.deciders import Yes, seats
from hitlchat.gate.models import Approval, AuditEvent, Decision, Handling, ToolCall, Verdict
from hitlchat.gate.status import Status
from hitlchat.gate.transition import StaleCall, note, remark

COUNTED: Final = "call.counted"
TAKEN_BACK: Final = "call.yes_taken_back"
PASSED_ON: Final = "call.passed_on"


class AlreadyCounted(Conflict):
    """The same person said yes to this before, or somebody did in their place, or they in that of somebody."""

    def __init__(self, yes: int, quorum: int, name: str = "") -> None:
        words = translatable(
            f"You already approved this call: {yes} of {quorum} people have. Someone else must approve it, too."
        )
        by_others = translatable(
            f"The yes of {name} counts already: {yes} of {quorum} people have approved. It counts only once."
        )
        super().__init__(by_others if name else words)


def add_yes(decision: Decision, actor: Actor, *, only_if: Where, data: dict[str, Any]) -> bool:
    """Record this yes, within the transaction that then moves the call. Return whether it is the last one needed.

    AlreadyCounted. StaleCall: the call waits no longer, or for another group, or `only_if` does not hold.
    """
    approval = decision.approval
    call = approval.call
    _lock(call, only_if)
    is_repeated = _put(decision)
    found = seats(call)
    yes, seat, left = _people(found), decision.absent_id or decision.person_id, _left(approval, found)
    if any(each.seat == seat and each.person != decision.person_id for each in found):
        raise AlreadyCounted(yes, call.quorum, User.objects.values_list("username", flat=True).get(pk=seat))
    # Also of one that was recorded before: somebody whose yes did not count for a time may be back.
    if yes >= call.quorum and not left:
        return True
    if is_repeated:
        raise AlreadyCounted(yes, call.quorum)
    remark(call, COUNTED, actor=actor, data={**data, "yes": yes, "quorum": call.quorum})
    _pass_on(approval, left, actor)
    return False


def has_said_yes(actor: Actor, approval: Approval) -> bool:
    """Return whether the person has said one of several yeses to just this before, be it that they took it back."""
    if approval.call.quorum < 2:
        return False
    said = AuditEvent.objects.filter(call=approval.call_id, name=COUNTED, actor=actor.user_id)
    return any(event.data["digest"] == approval.digest for event in said)


def drop_yes(decision: Decision) -> None:
    """Delete the earlier yes of a person who declines now."""
    _own(decision.approval.call, decision.person_id).delete()


def take_back_yes(call: ToolCall, actor: Actor) -> bool:
    """Take back the person's own yes to a call that waits for more of them, within the transaction that has locked it;
    False if it does not, or there is none.
    """
    rows = _own(call, actor.user_id or 0)
    digest = rows.values_list("digest", flat=True).first() if call.status == Status.WAITING else None
    if digest is None:
        return False
    rows.delete()
    found = seats(call)
    data = {"approval": str(call.approval.pk), "digest": digest, "yes": _people(found)}
    remark(call, TAKEN_BACK, actor=actor, data=data)
    _pass_on(call.approval, _left(call.approval, found), actor)
    return True


def _put(decision: Decision) -> bool:
    """Save this yes, in place of an earlier one of the same person; return whether it is that one once more."""
    call, is_in_chain = decision.approval.call, decision.for_group is not None
    before = Decision.objects.filter(
        approval=decision.approval, person_id=decision.person_id, round=decision.round
    ).first()
    if before is not None and not is_in_chain and before.absent_id == decision.absent_id:
        return True
    if before is not None and before.for_group != decision.for_group:
        found = seats(call)
        if any(each.person == decision.person_id for each in found):
            raise AlreadyCounted(_people(found), call.quorum)
    if before is not None:
        # They have come to decide for somebody else, or for themselves, and have one yes.
        before.delete()
    decision.save(force_insert=True)
    return False


def _left(approval: Approval, found: list[Yes]) -> list[int | None]:
    """Return the groups of a chain of which no yes counts, in their order; each person counts for one."""
    done = {each.seat: each.group for each in found}.values()
    return [group for group in oversight.in_turn(approval.disclosure["whoDecides"]) if group not in done]


def _pass_on(approval: Approval, left: list[int | None], actor: Actor) -> None:
    """Have the first of these groups be asked, if it is not its turn already."""
    call = approval.call
    if not left or left[0] == call.decider_group:
        return
    transition.still(call).update(decider_group=left[0])
    call.decider_group = left[0]
    Handling.objects.filter(approval=approval).delete()
    group = oversight.whose_turn(approval.disclosure["whoDecides"], call)
    data = {"approval": str(approval.pk), "group": group and group["name"], "row": transition.row_digest(call)}
    note(call.pk, PASSED_ON, actor=actor, data=data)


def _people(found: list[Yes]) -> int:
    return len({each.seat for each in found})


def _own(call: ToolCall, user_id: int) -> QuerySet[Decision]:
    yes = Decision.objects.filter(approval__call=call, person_id=user_id, round=call.round)
    return yes.filter(verdict=Verdict.APPROVE)


def _lock(call: ToolCall, only_if: Where) -> None:
    """Lock the call until the transaction ends; by a write, in which `only_if` is judged last."""
    if transition.still(call, only_if).update(round=call.round) != 1:
        raise StaleCall(f"call {call.pk} is no longer {call.status!r}")
