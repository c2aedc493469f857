"""Five more minutes for a question, in its last one. What moves is the deadline on the call's row alone: what was
shown, and so its digest, says until when the question was open when it was asked, and stays what it was.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from hitlchat.base.problems import Conflict
from hitlchat.gate import batch, decide
from hitlchat.gate.actor import Actor
from hitlchat.gate.deciders import may_answer, still_may_answer
from hitlchat.gate.models import LONGEST_DEADLINE, Approval, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note

MORE = timedelta(minutes=5)
LAST = timedelta(minutes=1)
LONGEST = timedelta(seconds=LONGEST_DEADLINE)
# By the database's clock, as is expiry itself.
IN_LAST_MINUTE = Q(deadline__gt=Now(), deadline__lte=Now() + LAST)

TOO_EARLY = "Five minutes can be added in the last minute of a question, and not before."
TOO_LONG = "No time can be added: a question is open for at most 30 days after its call was made."


class NotNow(Conflict):
    """The deadline stays as it is; the message says why."""


def extend(approval_id: UUID, actor: Actor, *, seen: datetime | None = None) -> ToolCall:
    """Put the deadline off by five minutes, also that of identical calls; the call as it stands then.

    `seen`: the deadline as the person saw it. If it was put off since then nothing more happens, so that two clicks
    add five minutes once. NotNow, AlreadySettled, NoSuchApproval: also for a client's word, which cannot buy time.
    """
    call = _theirs(approval_id, actor)
    if seen is not None and not _is_same(call, seen):
        return call
    assert call.deadline is not None
    until = call.deadline + MORE
    if not _put_off(call, approval_id, actor, until, IN_LAST_MINUTE):
        return _standing(call)
    for twin in batch.twins(call.approval):
        # On the same card, which has one deadline.
        _put_off(twin.call, twin.pk, actor, until, Q(deadline__gt=Now(), deadline__lt=until))
    return ToolCall.objects.get(pk=call.pk)


def _theirs(approval_id: UUID, actor: Actor) -> ToolCall:
    found = Approval.objects.select_related("call__tool").filter(pk=approval_id).first()
    if found is None or not actor.is_person or not may_answer(actor, found):
        raise decide.NoSuchApproval(decide.NOT_YOURS)
    if found.call.status != Status.WAITING:
        raise decide.AlreadySettled(found.call)
    return found.call


def _is_same(call: ToolCall, seen: datetime) -> bool:
    """Return whether two deadlines are the same, in whatever precision they travelled: none are within a second."""
    assert call.deadline is not None
    return abs(call.deadline - seen) < timedelta(seconds=1)


def _put_off(call: ToolCall, approval_id: UUID, actor: Actor, until: datetime, when: Q) -> bool:
    assert call.deadline is not None
    same = Q(pk=call.pk, status=Status.WAITING, round=call.round, deadline=call.deadline)
    rows = ToolCall.objects.filter(same, when, still_may_answer(actor, call), created_at__gte=until - LONGEST)
    data = {"approval": str(approval_id), "before": call.deadline.isoformat(), "after": until.isoformat()}
    with transaction.atomic():
        if rows.update(deadline=until) != 1:
            return False
        note(call.pk, "call.extended", actor=actor, data=data)
    return True


def _standing(read: ToolCall) -> ToolCall:
    """Return the call of a question that somebody else has just put off. Raises otherwise."""
    call = ToolCall.objects.get(pk=read.pk)
    if call.status == Status.WAITING and not decide.expire(call):
        call = ToolCall.objects.get(pk=read.pk)
    if call.status != Status.WAITING:
        raise decide.AlreadySettled(call)
    assert call.deadline is not None
    if call.deadline != read.deadline:
        return call
    raise NotNow(TOO_LONG if call.deadline + MORE > call.created_at + LONGEST else TOO_EARLY)
