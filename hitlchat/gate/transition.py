"""The one place that writes a call's status: the move, its audit event and its announcement belong together.

What happens to calls, as lines of the log: a name, ids, and words of our own choice.

Never arguments, results, reasons, or names that a model made up: whatever a log is sent to, and at whatever level, it
holds no secret of a call (SR-44).
"""

import logging
from collections.abc import Iterable
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.dispatch import Signal

from hitlchat.base import database
from hitlchat.gate import facts
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.status import ENTRIES, MOVES, SETTLED, Status

logger = logging.getLogger("hitlchat.gate")

NAMES: Final = {
    "call.waiting": "hitl.requested",
    "call.approved": "hitl.approved",
    "call.declined": "hitl.declined",
    "call.expired": "hitl.expired",
    "call.refused": "hitl.refused",
    "call.withdrawn": "hitl.refused",
    "call.executing": "tool.exec.start",
    "call.succeeded": "tool.exec.done",
    "call.failed": "tool.exec.done",
    "call.unknown": "tool.exec.crash",
}
# Of what failed outside of the tool itself.
CRASHES: Final = frozenset({"crash", "internal"})

Fields = dict[str, Any]


def fields(call: ToolCall, name: str, actor: Actor, data: dict[str, Any] | None) -> Fields:
    """Return what is logged of `name`, an event on record, once it is committed; read from what is at hand."""
    failed = (call.error or {}).get("kind") if call.status == Status.FAILED else None
    found = {
        "event": "tool.exec.crash" if failed in CRASHES else NAMES.get(name, name),
        "call": str(call.pk),
        "approval": (data or {}).get("approval") or _approval(call),
        "conversation": str(call.conversation_id) if call.conversation_id else None,
        # Of a tool that there is not, the name is whatever a model wrote.
        "tool": call.tool_name if call.tool_id else None,
        "source": call.source or None,
        "risk": call.risk_level,
        "caller": call.caller_kind,
        "means": actor.means,
        "rule": call.rule or None,
        "status": Status(call.status).value,
        # Refused by no policy.
        "nobodyAsked": (data or {}).get("nobodyAsked"),
        "errorKind": failed,
        "durationMs": call.duration_ms if name in ("call.succeeded", "call.failed", "call.unknown") else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def log(found: Fields) -> None:
    logger.info("%s %s", found["event"], found["call"], extra=found)


def _approval(call: ToolCall) -> str | None:
    """Return where it was read along with the call; that there is none may have been read, too."""
    asked = getattr(call, "approval", None) if ToolCall.approval.is_cached(call) else None
    return str(asked.pk) if asked is not None else None


AT_A_TIME = 500

# Sent after the commit with call_id, status, conversation_id and turn_id, and with whether it was asked about again:
# ids only. Who listens reads the row again.
call_moved = Signal()


RETURNED = frozenset({Status.SUCCEEDED, Status.FAILED})


class IllegalMove(Exception):
    """The table of moves does not have this one."""


class StaleCall(Exception):
    """Someone else moved the call first, or the condition for the move no longer holds."""


def enter(call: ToolCall, status: Status, *, actor: Actor, data: dict[str, Any] | None = None) -> ToolCall:
    """Put a submitted call on record with its first status.

    IllegalMove: a call can't begin with that status.
    """
    if status not in ENTRIES:
        raise IllegalMove(f"a call cannot begin as {status.value!r}")
    call.status = status
    call.settled_at = database.now() if status in SETTLED else None
    with transaction.atomic(savepoint=False):
        call.save(force_insert=True)
        _record(call, actor, data)
    return call


def move(
    call: ToolCall,
    to: Status,
    *,
    actor: Actor,
    only_if: Q | None = None,
    data: dict[str, Any] | None = None,
    **columns: Any,
) -> ToolCall:
    """Move `call` to `to`, writing `columns` along with it, or raise.

    IllegalMove: the table does not allow it. StaleCall: the stored status is no longer the one `call` was read with,
    or was left and reached again since, or `only_if` does not hold in the database.
    """
    if to not in MOVES[Status(call.status)]:
        raise IllegalMove(f"call {call.pk} cannot go from {Status(call.status).value!r} to {to.value!r}")
    if to in SETTLED:
        columns["settled_at"] = database.now()
    # What starts must be known to have started, also after a power cut.
    with database.durable() if to == Status.EXECUTING else transaction.atomic():
        rows = ToolCall.objects.filter(only_if or Q(), pk=call.pk, status=call.status, round=call.round)
        if rows.update(status=to, **columns) != 1:
            raise StaleCall(f"call {call.pk} is no longer {call.status!r}")
        call.status = to
        for name, value in columns.items():
            setattr(call, name, value)
        _record(call, actor, data)
    return call


def note(call_id: UUID | None, name: str, *, actor: Actor, data: dict[str, Any] | None = None) -> None:
    """Put on record what happened to a call without moving it; None: to none. With who did it, by id and name."""
    whole = {**(data or {}), **actor.known_by, **facts.by(actor)}
    AuditEvent.objects.create(name=name, call_id=call_id, actor_id=actor.user_id, means=actor.means, data=whole)


def note_all(name: str, each: Iterable[dict[str, Any]], *, actor: Actor) -> None:
    """Put on record many events of one name that are about no call, with one statement for some hundreds."""
    known = {**actor.known_by, **facts.by(actor)}
    events = [AuditEvent(name=name, actor_id=actor.user_id, means=actor.means, data={**data, **known}) for data in each]
    AuditEvent.objects.bulk_create(events, batch_size=AT_A_TIME)


def remark(call: ToolCall, name: str, *, actor: Actor, data: dict[str, Any] | None = None) -> None:
    """Put on record what happened to a call without moving it, and have those look again who look at it."""
    note(call.pk, name, actor=actor, data=data)
    logged = fields(call, name, actor, data)
    more = {"asked_again": call.round > 1, "conversation_id": call.conversation_id, "turn_id": call.turn_id}
    transaction.on_commit(partial(_announce, call.pk, Status(call.status), logged, **more), robust=True)


def _record(call: ToolCall, actor: Actor, data: dict[str, Any] | None) -> None:
    status = Status(call.status)
    # What else is known of it then, so that nobody can change the row without the record telling.
    known = facts.of_call(call)
    if status == Status.EXECUTING:
        known |= facts.of_arguments(call)
    if status in RETURNED:
        known |= facts.of_result(call)
    remark(call, f"call.{status.value}", actor=actor, data={**(data or {}), **known})


def _announce(call_id: UUID, status: Status, logged: Fields, **more: Any) -> None:
    log(logged)
    call_moved.send_robust(sender=ToolCall, call_id=call_id, status=status, **more)
