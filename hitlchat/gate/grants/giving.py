"""The life of a grant: given with the yes to a call that waits, listed, revoked by a person, void after a change."""

from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, cast
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.dispatch import Signal

from hitlchat.accounts.roles import may_administer
from hitlchat.base import canonical
from hitlchat.base.database import durable
from hitlchat.base.problems import NotFound
from hitlchat.gate import policy, stopping
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.grants import scope, standing
from hitlchat.gate.grants.scope import BadGrant, Scope, checked
from hitlchat.gate.models import Approval, CallerKind, Grant, HitlMode, ToolCall
from hitlchat.gate.models.calls import End
from hitlchat.gate.oversight import HIGHEST_RISK
from hitlchat.gate.status import Status
from hitlchat.gate.transition import StaleCall, move, note

# Sent after the commit with grant_id and conversation_id: that of a call it was given with or used for, or None.
grant_changed = Signal()


def tell(grant: Grant, *conversations: UUID | None) -> None:
    for conversation_id in {grant.approval.call.conversation_id, *conversations}:
        transaction.on_commit(partial(_send, grant.pk, conversation_id), robust=True)


def _send(grant_id: UUID, conversation_id: UUID | None) -> None:
    grant_changed.send_robust(sender=Grant, grant_id=grant_id, conversation_id=conversation_id)


MOST_AT_ONCE = 500
DECLINED = "the call that it was given with was declined when it was asked about again"


class NoSuchGrant(NotFound):
    """No grant has this id, or it is not this person's: both look the same from outside."""

    def __init__(self) -> None:
        super().__init__("There is no grant with this id for you to revoke.")


def revoke(grant_id: UUID, actor: Actor) -> Grant:
    """End it now, also if it is used up: what it let in does not start. One that has ended stays as it ended.

    NoSuchGrant: it is someone else's, and `actor` neither an administrator nor the operator on the console.
    """
    grant = Grant.objects.select_related("approval__call").filter(pk=grant_id).first()
    by = _revoker(actor, grant) if grant is not None else ""
    if grant is None or not by:
        raise NoSuchGrant
    _end(grant, End.REVOKED, actor, f"{by} revoked it")
    return Grant.objects.get(pk=grant_id)


def _revoker(actor: Actor, grant: Grant) -> str:
    """Return the name of whoever may revoke it."""
    if actor.means == "console" and actor.user_id is None:
        return "the operator, on the console,"
    person = User.objects.filter(pk=actor.user_id or 0).first() if actor.is_person else None
    may = person is not None and (grant.person_id == person.pk or may_administer(person))
    return person.get_username() if person is not None and may else ""


def revoke_given_with(call_id: UUID, actor: Actor) -> None:
    """Revoke the grants that were given together with the yes to this call."""
    for grant_id in Grant.objects.filter(approval__call_id=call_id).values_list("pk", flat=True):
        revoke(grant_id, actor)


def declined(call: ToolCall, actor: Actor) -> None:
    """Revoke, within the transaction of a no to `call`, what was given with an earlier yes to it."""
    if call.round > 1:
        for grant in Grant.objects.select_related("approval__call").filter(approval__call_id=call.pk):
            _end(grant, End.REVOKED, actor, DECLINED)


def void(grant: Grant, why: str) -> None:
    """End it because of what changed; nothing if it has ended already."""
    _end(grant, End.VOIDED, SYSTEM, why)


def void_changed() -> None:
    """Void, for the sweeper, grants that are void by now and that nobody has come across."""
    rows = Grant.objects.filter(standing.ACTIVE).select_related("tool__oversight", "person")
    for grant in rows[:MOST_AT_ONCE]:
        if why := standing.why_void(grant):
            void(grant, why)


def _end(grant: Grant, end: End, actor: Actor, why: str) -> None:
    with durable():
        rows = Grant.objects.filter(standing.NOT_ENDED, pk=grant.pk)
        if rows.update(end=end, why=why[:300], ended_at=Now(), ended_by_id=actor.user_id) != 1:
            return
        data = {"grant": str(grant.pk), "tool": grant.tool_name, "why": why}
        note(None, f"grant.{end.value}", actor=actor, data=data)
        _fence(grant, f"its grant was {end.label.lower()}: {why}", actor)
        tell(grant)


def _fence(grant: Grant, why: str, actor: Actor) -> None:
    """Every call that it let in is on record by now: whoever counts one holds the grant's row until that is so."""
    for call in ToolCall.objects.filter(grant_id=grant.pk, status=Status.ALLOWED):
        try:
            move(call, Status.WITHDRAWN, actor=actor, data={"reason": why}, reason=f"Not run: {why}.")
        except StaleCall:
            # It started just then: among those that execute.
            continue
    stopping.request_grant(grant.pk, actor)


MOST_ENDED = 100

State = Literal["active", "used_up", "over", "revoked", "voided"]
STATES: Final[dict[State, str]] = {
    "active": "Active",
    "used_up": "Used up",
    "over": "Its time is over",
    "revoked": "Revoked",
    "voided": "Void",
}


def seen_by(user: User) -> QuerySet[Grant]:
    """The latest first."""
    rows = Grant.objects.select_related("person", "ended_by").order_by("-given_at", "-id")
    return rows if may_administer(user) else rows.filter(person=user)


def active(rows: QuerySet[Grant]) -> QuerySet[Grant]:
    return rows.filter(standing.ACTIVE)


def ended(rows: QuerySet[Grant]) -> QuerySet[Grant]:
    """Used up, over, revoked or void."""
    return rows.exclude(pk__in=Grant.objects.filter(standing.ACTIVE).values("pk"))


def in_conversation(conversation_id: UUID, user_id: int) -> QuerySet[Grant]:
    """Return those that may cover calls of this person's assistant there."""
    here = Q(conversation_id=None) | Q(conversation_id=conversation_id)
    return Grant.objects.filter(standing.ACTIVE, here, person_id=user_id, caller_kind=CallerKind.CHAT)


def state(grant: Grant, *, is_active: bool) -> State:
    if is_active:
        return "active"
    if grant.end:
        return cast("State", grant.end)
    return "used_up" if grant.left == 0 else "over"


def why_not(approval: Approval, actor: Actor) -> str | None:
    """Return why `actor` may give no grant together with a yes to this; None if they may.

    `approval`: with its call's tool.
    """
    call, tool = approval.call, approval.call.tool
    if not standing.may_give(actor):
        return "Only a signed-in person, or a token of kind “approver”, gives grants."
    if call.caller_id != actor.user_id:
        return "Only the person whose calls a grant would cover can give it."
    if call.oversight_digest:
        return "This tool has rules of its own about who decides: no grant stands in for them."
    if tool is None:
        return "The tool was deleted."
    if tool.hitl_mode == HitlMode.REQUIRED:
        return "This tool asks every time: no grant changes that."
    risk = max(tool.risk_level, call.risk_level, int(approval.disclosure.get("risk", HIGHEST_RISK)))
    if risk >= HIGHEST_RISK:
        return f"Calls of risk L{HIGHEST_RISK} are always asked about."
    if not call.grantable:
        return "A rule of this installation asked, or a condition that gave no answer: no grant covers that."
    return _changed(call)


def _changed(call: ToolCall) -> str | None:
    tool = call.tool
    assert tool is not None
    asked = (call.tool_name, call.source, call.definition_hash, call.risk_level, call.rule)
    now = (tool.name, tool.source, tool.definition_hash, tool.risk_level, policy.rule_of(tool))
    return None if asked == now else "The tool or its rules changed since this was asked."


def meant(approval: Approval, scope: Scope, actor: Actor, arguments: dict[str, Any]) -> Scope:
    """The scope that `actor` would give, with the very time until when; `arguments` are those that a yes lets run.
    BadGrant.
    """
    if why := why_not(approval, actor):
        raise BadGrant({"grant": why})
    has_conversation = approval.call.conversation_id is not None
    found = checked(scope, _database_clock(approval), has_conversation=has_conversation)
    if found.condition:
        _try(found.condition, arguments)
    return found


def planned(approval: Approval, scope: Scope, actor: Actor, arguments: dict[str, Any]) -> Grant:
    """The grant, not yet given. BadGrant."""
    exactly, call = meant(approval, scope, actor, arguments), approval.call
    grant = Grant(
        approval=approval,
        person_id=call.caller_id,
        tool_id=call.tool_id,
        tool_name=call.tool_name,
        source=call.source,
        definition_hash=call.definition_hash,
        risk_level=call.risk_level,
        rule=call.rule,
        caller_kind=call.caller_kind,
        token_id=call.token_id,
        arguments_digest=canonical.sha256(arguments) if exactly.same_arguments else "",
        conversation_id=call.conversation_id if exactly.this_conversation else None,
        calls=exactly.calls,
        until=exactly.until,
        condition=exactly.condition,
        given_at=_database_clock(approval),
    )
    grant.seal = standing.seal(grant)
    return grant


def give(grant: Grant, actor: Actor) -> None:
    """Give a grant, within the transaction of the yes that it is given with."""
    grant.save(force_insert=True)
    data = {"grant": str(grant.pk), "scope": scope.sentence(grant), "seal": grant.seal}
    note(grant.approval.call_id, "grant.given", actor=actor, data=data)
    tell(grant)


def _database_clock(approval: Approval) -> datetime:
    now: datetime = ToolCall.objects.filter(pk=approval.call_id).annotate(now=Now()).values_list("now", flat=True)[0]
    return now


def _try(condition: str, arguments: dict[str, Any]) -> None:
    """Evaluate the grant for this very call: one that fails here would cover none."""
    try:
        async_to_sync(policy.holds)(condition, arguments)
    except policy.NoAnswer as error:
        raise BadGrant({"condition": f"For this call it {error}"}) from error
