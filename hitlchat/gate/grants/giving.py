"""Giving a grant: only together with the yes to a call that waits; and which grants a person sees."""

from datetime import datetime
from typing import Any, Final, Literal, cast
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from hitlchat.accounts.roles import may_administer
from hitlchat.base import canonical
from hitlchat.gate import policy
from hitlchat.gate.actor import Actor
from hitlchat.gate.grants import ending, scope, standing
from hitlchat.gate.grants.scope import BadGrant, Scope, checked
from hitlchat.gate.models import Approval, CallerKind, Grant, HitlMode, ToolCall
from hitlchat.gate.oversight import HIGHEST_RISK
from hitlchat.gate.transition import note

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
    """Those that may cover calls of this person's assistant there."""
    here = Q(conversation_id=None) | Q(conversation_id=conversation_id)
    return Grant.objects.filter(standing.ACTIVE, here, person_id=user_id, caller_kind=CallerKind.CHAT)


def state(grant: Grant, *, is_active: bool) -> State:
    if is_active:
        return "active"
    if grant.end:
        return cast("State", grant.end)
    return "used_up" if grant.left == 0 else "over"


def why_not(approval: Approval, actor: Actor) -> str | None:
    """Why `actor` may give no grant together with a yes to this; None if they may. `approval`: with its call's tool."""
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
    BadGrant."""
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
    """Within the transaction of the yes that it is given with."""
    grant.save(force_insert=True)
    data = {"grant": str(grant.pk), "scope": scope.sentence(grant), "seal": grant.seal}
    note(grant.approval.call_id, "grant.given", actor=actor, data=data)
    ending.tell(grant)


def _database_clock(approval: Approval) -> datetime:
    now: datetime = ToolCall.objects.filter(pk=approval.call_id).annotate(now=Now()).values_list("now", flat=True)[0]
    return now


def _try(condition: str, arguments: dict[str, Any]) -> None:
    """What cannot be evaluated for this very call would cover none."""
    try:
        async_to_sync(policy.holds)(condition, arguments)
    except policy.NoAnswer as error:
        raise BadGrant({"condition": f"For this call it {error}"}) from error
