"""What no event brings about: deadlines passing, processes dying, work left between two steps. Safe in any number."""

from datetime import timedelta

from hitlchat.base import lease
from hitlchat.gate import decide, perform, placing, stopping
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.grants import ending
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import StaleCall, move

# Younger ones are on their way in the process that moved them.
GRACE = timedelta(seconds=3)
# An allowed call that belongs to no turn has a caller waiting for it; after this long the caller is gone.
ABANDONED = timedelta(seconds=60)
GONE = "whoever asked for it has gone"
NO_WORKER = "no worker was free while its caller waited"


def sweep() -> None:
    decide.expire_overdue()
    ending.void_changed()
    perform.lose_overdue()
    stopping.look()
    _begin_what_was_left()
    _withdraw_abandoned()


def _begin_what_was_left() -> None:
    left = ToolCall.objects.filter(lease.is_older(GRACE), status__in=placing.READY)
    for call_id in left.exclude(status=Status.ALLOWED, turn_id=None).values_list("pk", flat=True)[:100]:
        perform.begin(call_id)


def _withdraw_abandoned() -> None:
    gone = ToolCall.objects.filter(lease.is_older(ABANDONED), status=Status.ALLOWED, turn_id=None)
    for call in gone[:100]:
        try:
            why = NO_WORKER if placing.queued_since(call) else GONE
            move(call, Status.WITHDRAWN, actor=SYSTEM, data={"reason": why}, reason=f"Not run: {why}.")
        except StaleCall:
            continue
