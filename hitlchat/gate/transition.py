"""The one place that writes a call's status: the move, its audit event and its announcement belong together."""

from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.dispatch import Signal
from django.utils import timezone

from hitlchat.gate import events
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.status import ENTRIES, MOVES, SETTLED, Status

# Sent after the commit with call_id, status, conversation_id and turn_id, and with whether it was asked about again:
# ids only. Who listens reads the row again.
call_moved = Signal()


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
    call.settled_at = timezone.now() if status in SETTLED else None
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
        columns["settled_at"] = timezone.now()
    with transaction.atomic():
        rows = ToolCall.objects.filter(only_if or Q(), pk=call.pk, status=call.status, round=call.round)
        if rows.update(status=to, **columns) != 1:
            raise StaleCall(f"call {call.pk} is no longer {call.status!r}")
        call.status = to
        for name, value in columns.items():
            setattr(call, name, value)
        _record(call, actor, data)
    return call


def note(call_id: UUID | None, name: str, *, actor: Actor, data: dict[str, Any] | None = None) -> None:
    """Put on record what happened to a call without moving it; None: to none."""
    whole = {**(data or {}), **actor.known_by}
    AuditEvent.objects.create(name=name, call_id=call_id, actor_id=actor.user_id, means=actor.means, data=whole)


def remark(call: ToolCall, name: str, *, actor: Actor, data: dict[str, Any] | None = None) -> None:
    """Put on record what happened to a call without moving it, and have those look again who look at it."""
    note(call.pk, name, actor=actor, data=data)
    logged = events.fields(call, name, actor, data)
    more = {"asked_again": call.round > 1, "conversation_id": call.conversation_id, "turn_id": call.turn_id}
    transaction.on_commit(partial(_announce, call.pk, Status(call.status), logged, **more), robust=True)


def _record(call: ToolCall, actor: Actor, data: dict[str, Any] | None) -> None:
    remark(call, f"call.{Status(call.status).value}", actor=actor, data=data)


def _announce(call_id: UUID, status: Status, logged: events.Fields, **more: Any) -> None:
    events.log(logged)
    call_moved.send_robust(sender=ToolCall, call_id=call_id, status=status, **more)
