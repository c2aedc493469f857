"""Asking again: what an approved call would do, looked at once more right before it starts."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from hitlchat.gate import canonical, disclosure, preview
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.preview import Shown
from hitlchat.gate.status import Status
from hitlchat.gate.storable import storable
from hitlchat.gate.transition import move

# How often a person says yes to a call whose preview has changed by the time it is to start.
MOST_CHANGES = 3

CHANGED = "What it would do has changed since you approved it."
EDITED = "You changed the arguments: this is what it would do with them."
FAILED = "What it would do could not be looked at again after you approved it."


@dataclass(frozen=True)
class Look:
    """What an approved call would do, as of now; good for the round of asking that it was made in."""

    round: int
    preview: Shown


class LookFirst(Exception):
    """This call may not start before its preview was made again, in its present round."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(f"call {call.pk} was approved with a preview, which has to be made again first")
        self.call = call


def is_due(call: ToolCall) -> bool:
    """Was `call` approved with a preview? One that had failed promised nothing, save that with other arguments it may
    not fail."""
    if call.status != Status.APPROVED or (shown := call.approval.disclosure.get("preview")) is None:
        return False
    return not isinstance(shown, dict) or shown.get("error") is None or _edited(call)


async def look(call: ToolCall) -> Look:
    assert call.tool is not None
    caller = disclosure.caller_of(call.approval.disclosure)
    made = await preview.make(call.tool, call.arguments, caller)
    return Look(call.round, made or preview.failed("The tool gave no preview this time."))


def is_as_shown(call: ToolCall, seen: Look) -> bool:
    """LookFirst when `seen` is of an earlier round."""
    if seen.round != call.round:
        raise LookFirst(call)
    return canonical.dumps(seen.preview) == canonical.dumps(call.approval.disclosure["preview"])


def ask(call: ToolCall, seen: Look) -> None:
    """Put the question anew, with what was seen now and a fresh deadline; after too many changes, withdraw the call.

    StaleCall: someone else moved the call first.
    """
    approval, tool = call.approval, call.tool
    assert tool is not None
    # Rounds in which the person changed the arguments are the person's own doing.
    unedited = approval.decisions.filter(verdict="approve", edited_arguments=None)
    if unedited.order_by().values("round").distinct().count() >= MOST_CHANGES:
        void = f"what it would do kept changing, each of the {MOST_CHANGES} times that it was approved"
        move(
            call,
            Status.WITHDRAWN,
            actor=SYSTEM,
            data={"reason": void, "seen": seen.preview},
            reason=f"Not run: {void}.",
        )
        return
    before, call.deadline = approval.disclosure, disclosure.deadline_of(tool)
    why = EDITED if _edited(call) else FAILED if seen.preview["error"] is not None else CHANGED
    shown = disclosure.renewed(before, call, tool, preview=seen.preview, why=why)
    digest = disclosure.digest(shown)
    data = {"approval": str(approval.pk), "digest": digest, "reason": why, "before": before}
    with transaction.atomic():
        columns: dict[str, Any] = {
            "deadline": call.deadline,
            "escalates_at": call.escalates_at,
            "risk_level": shown["risk"],
        }
        move(call, Status.WAITING, actor=SYSTEM, data=data, round=call.round + 1, **columns)
        Approval.objects.filter(pk=approval.pk).update(
            prompt=storable(shown["prompt"]), disclosure=shown, digest=digest, same=""
        )


def _edited(call: ToolCall) -> bool:
    return canonical.dumps(call.arguments) != canonical.dumps(call.approval.disclosure["arguments"])
