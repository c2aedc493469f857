"""The one place that writes a call's status, with its audit event and its announcement.

What happens to calls, as lines of the log: a name, ids, and words of our own choice.

Never arguments, results, reasons, or names that a model made up: whatever a log is sent to, and at whatever level, it
holds no secret of a call (SR-44).

Events carry digests of what people read in other tables, so that the record can tell whether it still says so. Whoever
changes which columns are covered raises FACTS_VERSION, and keeps the columns of before for the events of before.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.dispatch import Signal

from hitlchat.base import canonical, database
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import Rows, Where, compiled, condition
from hitlchat.gate.actor import SYSTEM, Actor, Caller
from hitlchat.gate.models import AuditEvent, Decision, ToolCall, delegation
from hitlchat.gate.status import ENTRIES, MOVES, SETTLED, Status

logger = logging.getLogger("hitlchat.gate")

NAMES: Final = {
    "call.waiting": "hitl.requested",
    "call.approved": "hitl.approved",
    "call.declined": "hitl.declined",
    "call.answered": "hitl.answered",
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

Facts = dict[str, Any]

AT_A_TIME = 500

# Sent after the commit with call_id, status, conversation_id and turn_id, and with whether it was asked about again, or
# first after it was let run: ids only. Who listens reads the row again.
call_moved = Signal()

FACTS_VERSION: Final = 1
# A call's columns, save for its lease and its deadline, which change without a move, and for whether its tool is still
# there.
CALL_COLUMNS: Final = (
    *("id", "tool_name", "source", "definition_hash", "risk_level", "arguments", "status", "round", "caller_kind"),
    *("caller_id", "conversation_id", "turn_id", "position", "model_call_id", "rule", "reason", "grantable"),
    *("grant_id", "token_id", "result", "error", "output", "decided_by", "decider_group", "quorum"),
    *("not_the_requester", "escalates_to", "escalates_at", "oversight_digest"),
    *("created_at", "started_at", "settled_at"),
)
DECISION_COLUMNS: Final = (
    *("id", "approval_id", "person_id", "round", "verdict", "means", "client", "token_name", "reason"),
    *("edited_arguments", "digest", "first_shown_at", "opened", "hurried", "decided_at"),
)
# What came back, and what of it a program printed.
RESULT_COLUMNS: Final = ("result", "error", "output")


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
    only_if: Where | None = None,
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
    before = call.status
    # What starts must be known to have started, also after a power cut. No savepoint: nothing is written but all of it.
    with database.durable() if to == Status.EXECUTING else transaction.atomic(savepoint=False):
        if is_moved := still(call, only_if).update(status=to, **columns) == 1:
            call.status = to
            for name, value in columns.items():
                setattr(call, name, value)
            _record(call, actor, data, asked_late=to == Status.WAITING)
    if not is_moved:
        # Outside of the transaction, which whoever is in a larger one goes on with.
        raise StaleCall(f"call {call.pk} is no longer {before!r}")
    return call


def in_no_table(**columns: Any) -> ToolCall:
    """Return what looks like a call that waits and is none, for a card: nobody stores it, so no statement moves it."""
    return ToolCall(status=Status.WAITING, **columns)


def still(call: ToolCall, only_if: Where | None = None) -> Rows[ToolCall]:
    """Return the row of the call while it is as it was read, and `only_if` holds."""
    rows = _still(call.pk, call.status, call.round)
    if call.quorum > 1 and call.decider_group is not None:
        # In a chain it may be another group's turn by now, which the digest of the row covers.
        rows = rows.where(_is_turn_of(call.decider_group))
    return rows if only_if is None else rows.where(only_if)


def withdraw(call: ToolCall, why: str, *, actor: Actor = SYSTEM, **data: Any) -> bool:
    """Move `call` to withdrawn because of `why`, the end of a sentence; False if somebody else moved it first."""
    reason = translatable(f"Not run: {why}.")
    try:
        move(call, Status.WITHDRAWN, actor=actor, data={"reason": why, **data}, reason=reason)
    except StaleCall:
        return False
    return True


def note(call_id: UUID | None, name: str, *, actor: Actor, data: dict[str, Any] | None = None) -> AuditEvent:
    """Record an event about a call that stays where it is, or about none; with who did it, by id and name."""
    whole = {**(data or {}), **_actor_facts(actor)}
    return AuditEvent.objects.create(**_columns(name, whole, actor), call_id=call_id, data=whole)


def note_all(name: str, each: Iterable[dict[str, Any]], *, actor: Actor) -> list[AuditEvent]:
    """Put on record many events of one name that are about no call, with one statement for some hundreds."""
    facts = _actor_facts(actor)
    events = [AuditEvent(**_columns(name, data, actor), data={**data, **facts}) for data in each]
    return AuditEvent.objects.bulk_create(events, batch_size=AT_A_TIME)


def is_on_record(call: ToolCall) -> bool:
    """Return whether the last move on record is the one to the call's status."""
    return _moves(call.pk).first() == f"call.{Status(call.status).value}"


def remark(
    call: ToolCall, name: str, *, actor: Actor, data: dict[str, Any] | None = None, asked_late: bool = False
) -> None:
    """Record an event about a call that stays where it is, and ask open pages to redraw it."""
    note(call.pk, name, actor=actor, data=data)
    database.after_commit(
        _announce,
        call.pk,
        Status(call.status),
        _logged(call, name, actor, data),
        asked_again=call.round > 1 or asked_late,
        conversation_id=call.conversation_id,
        turn_id=call.turn_id,
    )


def decision_digest(decision: Decision) -> str:
    """Return the digest of all of a person's answer that people read."""
    return _digest(decision, decision_columns(decision.absent_id, decision.for_group))


def decision_columns(absent_id: int | None, for_group: int | None) -> tuple[str, ...]:
    """Return the columns that the digest of an answer covers: of one in somebody's place, in whose; in a chain, of
    which group.
    """
    place = () if absent_id is None else ("absent_id", "absent_name")
    return (*DECISION_COLUMNS, *place, *(() if for_group is None else ("for_group",)))


def row_digest(call: ToolCall) -> str:
    """Return the digest of all of a call's row that the record covers."""
    return _digest(call, CALL_COLUMNS)


def origin_facts(call: ToolCall, caller: Caller) -> Facts:
    """Return the tool of a call, its caller, and the agents between them, if any."""
    tool = {"name": call.tool_name, "source": call.source, "definition": call.definition_hash}
    found: Facts = {"tool": tool, "caller": {"kind": caller.kind, "id": caller.user_id, "name": caller.user_name}}
    agents = delegation.agents(call.conversation_id)
    return found | {"agents": agents} if agents else found


def are_same_facts(digest: object, columns: Iterable[str], row: Mapping[str, Any]) -> bool:
    """Return whether the digest in an event is of `row` as it is."""
    return digest == versioned_digest({name: row[name] for name in columns})


def versioned_digest(values: Mapping[str, Any]) -> str:
    return f"{FACTS_VERSION}:{facts_digest(values)}"


def facts_digest(values: Mapping[str, Any]) -> str:
    """SHA-256 over columns, as they are read back from the database."""
    return canonical.sha256({name: _plain(value) for name, value in values.items()})


@compiled
def _still(call_id: UUID, status: str, number: int) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(pk=call_id, status=status, round=number)


@condition
def _is_turn_of(group_id: int) -> Q:
    return Q(decider_group=group_id)


@compiled
def _moves(call_id: UUID) -> QuerySet[AuditEvent, str]:
    rows = AuditEvent.objects.filter(call_id=call_id, name__in=[f"call.{each}" for each in Status.values])
    return rows.order_by("-pk").values_list("name", flat=True)


@compiled
def _username(user_id: int) -> QuerySet[User, str]:
    return User.objects.filter(pk=user_id).values_list("username", flat=True)


def _actor_facts(actor: Actor) -> Facts:
    """Return who did it, for an event: how they were known, their id, and the name they have now."""
    if actor.user_id is None:
        return {**actor.known_by}
    name = actor.name or _username(actor.user_id).one()
    return {**actor.known_by, "by": {"id": actor.user_id, "name": name}}


def _digest(row: ToolCall | Decision, columns: Iterable[str]) -> str:
    return versioned_digest({name: getattr(row, name) for name in columns})


def _approval(call: ToolCall) -> str | None:
    """Return where it was read along with the call; that there is none may have been read, too."""
    approval = getattr(call, "approval", None) if ToolCall.approval.is_cached(call) else None
    return str(approval.pk) if approval is not None else None


def _columns(name: str, data: Mapping[str, Any], actor: Actor) -> Facts:
    guard_of = data.get("id") if name.startswith("tool.") else None
    return {"name": name, "actor_id": actor.user_id, "means": actor.means, "guard_of": guard_of}


def _record(call: ToolCall, actor: Actor, data: dict[str, Any] | None, *, asked_late: bool = False) -> None:
    status = Status(call.status)
    # So that nobody can change the row without the record telling.
    facts = {"row": row_digest(call)}
    if status == Status.EXECUTING:
        facts["argumentsDigest"] = canonical.sha256(call.arguments)
    if status in (Status.SUCCEEDED, Status.FAILED):
        facts["resultDigest"] = facts_digest({name: getattr(call, name) for name in RESULT_COLUMNS})
    remark(call, f"call.{status.value}", actor=actor, data={**(data or {}), **facts}, asked_late=asked_late)


def _logged(call: ToolCall, name: str, actor: Actor, data: dict[str, Any] | None) -> Facts:
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


def _announce(call_id: UUID, status: Status, logged: Facts, **more: Any) -> None:
    logger.info("%s %s", logged["event"], logged["call"], extra=logged)
    call_moved.send_robust(sender=ToolCall, call_id=call_id, status=status, **more)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, UUID):
        return str(value)
    # As JSON has it: a tuple is a list, and every key a text.
    return json.loads(canonical.pretty(value)) if isinstance(value, dict | list | tuple) else value
