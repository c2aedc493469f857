"""The one place that writes a call's status: the move, its audit event and its announcement belong together."""

from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.dispatch import Signal

from hitlchat import database
from hitlchat.gate import events, facts
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.status import ENTRIES, MOVES, SETTLED, Status

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
    logged = events.fields(call, name, actor, data)
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


def _announce(call_id: UUID, status: Status, logged: events.Fields, **more: Any) -> None:
    events.log(logged)
    call_moved.send_robust(sender=ToolCall, call_id=call_id, status=status, **more)
