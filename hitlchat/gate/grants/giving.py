"""The life of a grant: given with a yes, used, listed, revoked, void after a change.

Whether a call runs without asking because of a grant is looked up when the call is judged, and counted when it is
recorded.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Literal, cast
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db.models import Count, F, Max, Q, QuerySet
from django.db.models.functions import Now
from django.dispatch import Signal
from django.utils.translation import gettext_noop

from hitlchat.accounts.roles import may_administer
from hitlchat.base import canonical, database
from hitlchat.base.database import after_commit, durable, in_db
from hitlchat.base.problems import NotFound
from hitlchat.base.sentences import translatable
from hitlchat.gate import oversight, policy, stopping
from hitlchat.gate.actor import SYSTEM, Actor, Caller
from hitlchat.gate.grants import scope
from hitlchat.gate.grants.scope import BadGrant, Scope, checked, fixed, seal
from hitlchat.gate.models import (
    Approval,
    AuditEvent,
    CallerKind,
    Decision,
    Grant,
    HitlMode,
    Tool,
    ToolCall,
    Verdict,
    delegation,
)
from hitlchat.gate.models.calls import End
from hitlchat.gate.oversight import HIGHEST_RISK
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note, withdraw

# Sent after the commit with grant_id and conversation_id: at the top of that of a call it was given with or used for,
# or None.
grant_changed = Signal()

MOST_AT_ONCE = 500
DECLINED = "the call that it was given with was declined when it was asked about again"
# Of earned rules.
PUBLISHED: Final = "grant.earned"
DECAYED: Final = gettext_noop("no call used it for 30 days")
SAID_NO: Final = gettext_noop("a person said no to a call like those it covers")
REGRETTED: Final = gettext_noop("a person said, looking back, that a call it covered should have been asked about")

MOST_ENDED = 100

State = Literal["active", "used_up", "over", "revoked", "voided", "decayed", "declined"]
STATES: Final[dict[State, str]] = {
    "active": "Active",
    "used_up": "Used up",
    "over": "Its time is over",
    "revoked": "Revoked",
    "voided": "Void",
    "decayed": "Decayed",
    "declined": "Ended by a no",
}

# Of so many at most, the oldest first.
MOST_COVERING = 20
MISCOUNTED = "the record of the grant was changed"


class NoSuchGrant(NotFound):
    """No grant has this id, or it is not this person's: both look the same from outside."""

    def __init__(self) -> None:
        super().__init__(gettext_noop("There is no grant with this id for you to revoke."))


def tell(grant: Grant, *conversations: UUID | None) -> None:
    given_in = () if grant.approval is None else (grant.approval.call.conversation_id,)
    where = {*given_in, *conversations}
    for conversation_id in {each and delegation.root(each) for each in where}:
        after_commit(grant_changed.send_robust, sender=Grant, grant_id=grant.pk, conversation_id=conversation_id)


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


def revoke_given_with(call_id: UUID, actor: Actor) -> None:
    for grant_id in Grant.objects.filter(approval__call_id=call_id).values_list("pk", flat=True):
        revoke(grant_id, actor)


def revoke_all(actor: Actor, why: str) -> int:
    """Revoke every grant where no server runs, and return how many there were. What they let in is not withdrawn."""
    return sum(_close(grant, End.REVOKED, actor, why) for grant in active(Grant.objects.all()))


def declined(call: ToolCall, actor: Actor, unlike: Collection[UUID] = ()) -> None:
    """Revoke, within the transaction of a no to `call`, what was given with an earlier yes to it, and end the earned
    rules of its tool but for those that it is `unlike`.
    """
    if call.round > 1:
        for grant in Grant.objects.select_related("approval__call").filter(approval__call_id=call.pk):
            _end(grant, End.REVOKED, actor, DECLINED)
    # Not as the tool was read: to a rule that came into force since, nothing is known to be unlike.
    if call.tool is not None and Tool.objects.filter(pk=call.tool.pk, earned=True).exists():
        for grant in earned().filter(scope.NOT_ENDED, tool=call.tool).exclude(pk__in=unlike):
            _end(grant, End.DECLINED, actor, SAID_NO)


def unlike(call: ToolCall) -> list[UUID]:
    """Return the earned rules of the tool of `call` whose condition says that they are not about calls like it; before
    the transaction of a no, as that takes a run in the sandbox. `call` is read with its tool.
    """
    if call.tool is None or not call.tool.earned:
        return []
    found = []
    for grant in earned().filter(scope.NOT_ENDED, tool=call.tool):
        with suppress(policy.NoAnswer):
            # Wherever its values come from: a no is a no.
            if not async_to_sync(policy.holds)(grant.condition, _given(grant, call.arguments, outside=False)):
                found.append(grant.pk)
    return found


def regretted(call: ToolCall, actor: Actor) -> None:
    """End the earned rule that `call` ran on, if it did, within the transaction of a no to it afterwards."""
    for grant in earned().filter(scope.NOT_ENDED, covered=call):
        _end(grant, End.DECLINED, actor, REGRETTED)


def void_changed() -> None:
    """Void the grants that a change has made void, whether or not a call needed them since; and end earned rules that
    have decayed.
    """
    every = scope.ACTIVE | (scope.NOT_ENDED & scope.EARNED)
    rows = Grant.objects.filter(every).select_related("tool__oversight", "person")
    for grant in rows[:MOST_AT_ONCE]:
        if why := scope.why_void(grant):
            _end(grant, End.VOIDED, SYSTEM, why)
        elif grant.is_earned and grant.until is not None and grant.until <= database.now():
            _end(grant, End.DECAYED, SYSTEM, DECAYED)


def earned() -> QuerySet[Grant]:
    """Return all earned rules, the latest first."""
    return Grant.objects.filter(scope.EARNED).select_related("person", "ended_by").order_by("-given_at", "-id")


def seen_by(user: User) -> QuerySet[Grant]:
    """Return those that people gave with a yes."""
    rows = Grant.objects.exclude(scope.EARNED).select_related("person", "ended_by").order_by("-given_at", "-id")
    return rows if may_administer(user) else rows.filter(person=user)


def active(rows: QuerySet[Grant]) -> QuerySet[Grant]:
    return rows.filter(scope.ACTIVE)


def ended(rows: QuerySet[Grant]) -> QuerySet[Grant]:
    """Return those that are used up, over, revoked or void."""
    return rows.exclude(pk__in=Grant.objects.filter(scope.ACTIVE).values("pk"))


def in_conversation(conversation_id: UUID, user_id: int) -> QuerySet[Grant]:
    """Return those that may cover calls of this person's assistant there."""
    here = Q(conversation_id=None) | Q(conversation_id=delegation.root(conversation_id))
    own = Grant.objects.filter(scope.ACTIVE, here, person_id=user_id, caller_kind=CallerKind.CHAT)
    return own.exclude(scope.EARNED)


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
    if actor.user_id is None or actor.means not in scope.MEANS:
        return gettext_noop("Only a signed-in person, or a token of kind “approver”, gives grants.")
    if call.caller_id != actor.user_id:
        return gettext_noop("Only the person whose calls a grant would cover can give it.")
    if call.oversight_digest:
        return gettext_noop("This tool has its own rules about who decides, so no grant applies.")
    if tool is None:
        return gettext_noop("The tool was deleted.")
    if tool.hitl_mode == HitlMode.REQUIRED:
        return gettext_noop("This tool asks every time, so no grant applies.")
    risk = max(tool.care, call.risk_level, int(approval.disclosure.get("risk", HIGHEST_RISK)))
    if risk >= HIGHEST_RISK:
        return translatable(f"Calls of risk L{HIGHEST_RISK} always need approval.")
    return _asked_by_others(call, risk) or _changed(call)


def meant(approval: Approval, scope: Scope, actor: Actor, arguments: dict[str, Any]) -> Scope:
    """The scope that `actor` would give, with the very time until when; `arguments` are those that a yes lets run.
    BadGrant.
    """
    if why := why_not(approval, actor):
        raise BadGrant({"grant": why})
    has_conversation = approval.call.conversation_id is not None
    found = checked(scope, _database_clock(approval), has_conversation=has_conversation)
    if found.condition:
        try:
            # For this very call: a condition that fails here would cover none.
            async_to_sync(policy.holds)(found.condition, {policy.ARGUMENTS: arguments})
        except policy.NoAnswer as error:
            raise BadGrant({"condition": f"For this call, the condition {error}"}) from error
    return found


def planned(approval: Approval, scope: Scope, actor: Actor, arguments: dict[str, Any]) -> Grant:
    """Return the grant, which is not yet given. Raises: BadGrant."""
    exactly, call = meant(approval, scope, actor, arguments), approval.call
    here = call.conversation_id
    grant = Grant(
        approval=approval,
        **fixed(call),
        token_id=call.token_id,
        arguments_digest=canonical.sha256(canonical.alike(arguments)) if exactly.same_arguments else "",
        # The one that a person sees, whose agents' calls a grant for it covers, too.
        conversation_id=delegation.root(here) if exactly.this_conversation and here else None,
        calls=exactly.calls,
        until=exactly.until,
        condition=exactly.condition,
        given_at=_database_clock(approval),
    )
    grant.seal = seal(grant)
    return grant


def give(grant: Grant, actor: Actor) -> None:
    """Give a grant, within the transaction of the yes that it is given with."""
    grant.save(force_insert=True)
    data = {"grant": str(grant.pk), "scope": scope.sentence(grant), "seal": grant.seal}
    assert grant.approval is not None
    note(grant.approval.call_id, "grant.given", actor=actor, data=data)
    tell(grant)


def put_in_force(rule: Grant, actor: Actor, **evidence: Any) -> None:
    """Put an earned rule in force, within the transaction that publishes it, with its evidence on record."""
    rule.seal = seal(rule)
    data = {"grant": str(rule.pk), "tool": rule.tool_name, "scope": scope.sentence(rule), "seal": rule.seal}
    rule.event = note(None, PUBLISHED, actor=actor, data={**data, **evidence}).pk
    rule.save(force_insert=True)


async def covering(
    tool: Tool,
    arguments: dict[str, Any],
    caller: Caller,
    conversation_id: UUID | None = None,
    *,
    args_from_outside: bool = True,
) -> tuple[Grant, ...]:
    """Return those that may cover such a call, in the order in which they are to be used.

    Of those that are void by now, this is put on record.
    """
    if not scope.may_be_granted(tool):
        return ()
    found = []
    for grant in await in_db(_in_force)(tool, arguments, caller, conversation_id):
        with suppress(policy.NoAnswer):
            given = _given(grant, arguments, outside=args_from_outside)
            if not grant.condition or await policy.holds(grant.condition, given):
                found.append(grant)
    return tuple(found)


def hold(grants: Iterable[Grant]) -> None:
    """Lock all grants that calls may use, before several of these are recorded in one transaction: always in the same
    order, so that two such transactions never wait for each other.
    """
    ids = {grant.pk for grant in grants}
    if ids:
        list(Grant.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk"))


def has_left(grants: Iterable[Grant]) -> bool:
    """Return whether one of them may still be used; of what `hold` locked, this stays so to the transaction's end. Not
    of earned rules, which may have no budget left for the call.
    """
    ids = {grant.pk for grant in grants if not grant.is_earned}
    return bool(ids) and Grant.objects.filter(scope.ACTIVE, pk__in=ids).exists()


def take(grants: Iterable[Grant], call: ToolCall) -> Grant | None:
    """Use up one call of the first of `grants` that has one left for `call`, which is about to be recorded in this same
    transaction; None if none has: then a person is asked.
    """
    for grant in grants:
        rows = Grant.objects.filter(scope.ACTIVE, scope.like(call), pk=grant.pk, seal=grant.seal)
        columns: dict[str, Any] = {"used": F("used") + 1}
        if grant.is_earned:
            # Its budget is counted in other rows: nobody else may add one meanwhile.
            hold([grant])
            rows = rows.filter(scope.has_budget(call))
            columns["until"] = call.created_at + scope.DECAY
        # Of two calls that want the last use, the second waits here for the first and finds nothing left.
        if rows.update(**columns) == 1:
            return Grant.objects.select_related("person").get(pk=grant.pk)
    return None


def give_back(grant_id: UUID, call: ToolCall) -> None:
    """Give back what was counted for a call that is asked about after all; within the transaction that asks."""
    Grant.objects.filter(pk=grant_id, used__gt=0).update(used=F("used") - 1)
    for rule in earned().filter(pk=grant_id):
        last = ToolCall.objects.filter(grant_id=grant_id).aggregate(last=Max("created_at"))["last"]
        earned().filter(pk=grant_id).update(until=(last or rule.given_at) + scope.DECAY)
    grant = Grant.objects.select_related("approval__call").get(pk=grant_id)
    note(call.pk, "grant.given_back", actor=SYSTEM, data={"grant": str(grant.pk), "used": grant.used})
    tell(grant, call.conversation_id)


def record(grant: Grant, call: ToolCall) -> None:
    data = {"grant": str(grant.pk), "used": grant.used, "calls": grant.calls}
    note(call.pk, "grant.used", actor=SYSTEM, data=data)
    if grant.calls == grant.used:
        note(call.pk, "grant.used_up", actor=SYSTEM, data=data)
    tell(grant, call.conversation_id)


def _revoker(actor: Actor, grant: Grant) -> str:
    """Return the name of whoever may revoke it."""
    if actor.means == "console" and actor.user_id is None:
        return "the operator, on the console,"
    person = actor.person
    may = person is not None and (grant.person_id == person.pk or may_administer(person))
    return person.get_username() if person is not None and may else ""


def _end(grant: Grant, end: End, actor: Actor, why: str) -> None:
    """End a grant; one that has ended stays as it ended."""
    with durable():
        if not _close(grant, end, actor, why):
            return
        # All that it let in is on record: counting holds the grant's row until then.
        for call in ToolCall.objects.filter(grant_id=grant.pk, status=Status.ALLOWED):
            # One that started just then is among those that execute.
            withdraw(call, translatable(f"its grant was {end.label.lower()}: {why}"), actor=actor)
        if end in (End.REVOKED, End.VOIDED):
            stopping.request_grant(grant.pk, actor)
        tell(grant)


def _close(grant: Grant, end: End, actor: Actor, why: str) -> bool:
    """Put it on record as ended; False if it is already."""
    rows = Grant.objects.filter(scope.NOT_ENDED, pk=grant.pk)
    if end == End.DECAYED:
        # Not one that was used just then.
        rows = rows.exclude(scope.IN_TIME)
    if rows.update(end=end, why=why[:300], ended_at=Now(), ended_by_id=actor.user_id) != 1:
        return False
    data = {"grant": str(grant.pk), "tool": grant.tool_name, "why": why}
    note(None, f"grant.{end.value}", actor=actor, data=data)
    return True


def _asked_by_others(call: ToolCall, risk: int) -> str | None:
    """Return why a grant could not cover the call, though its tool lets it."""
    if oversight.asks_about(call.conversation_id, risk):
        return gettext_noop("This conversation itself asks about such calls, so no grant applies.")
    if call.grantable:
        return None
    return gettext_noop("A rule of this installation asked, or a condition failed: no grant covers that.")


def _changed(call: ToolCall) -> str | None:
    tool = call.tool
    assert tool is not None
    then = (call.tool_name, call.source, call.definition_hash, call.risk_level, call.rule)
    now = (tool.name, tool.source, tool.definition_hash, tool.risk_level, policy.rule_of(tool))
    return None if then == now else "The tool or its rules changed since this was asked."


def _database_clock(approval: Approval) -> datetime:
    now: datetime = ToolCall.objects.filter(pk=approval.call_id).annotate(now=Now()).values_list("now", flat=True)[0]
    return now


def _in_force(tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None) -> list[Grant]:
    theirs = Q(person_id=caller.user_id, approval__isnull=False)
    theirs = theirs | scope.EARNED if tool.earned else theirs
    mine = Grant.objects.filter(scope.ACTIVE, theirs, tool_id=tool.pk, caller_kind=caller.kind)
    rows = mine.filter(scope.matching(arguments, conversation_id, caller.token_id))
    # In one statement, and so of one moment: each use is counted twice.
    counted = rows.select_related("tool__oversight", "person").annotate(
        uses=Count("covered"), last=Max("covered__created_at")
    )
    return [grant for grant in counted[:MOST_COVERING] if not _is_void(grant, grant.uses, grant.last)]


def _given(grant: Grant, arguments: dict[str, Any], *, outside: bool) -> dict[str, Any]:
    """Return what the condition of a grant is given by name."""
    return {policy.ARGUMENTS: arguments} | ({policy.OUTSIDE: outside} if grant.is_earned else {})


def _is_as_published(rule: Grant, uses: int, last: datetime | None) -> bool:
    """Return whether the record states that the earned rule was published so, and its uses and its end are in order."""
    event = AuditEvent.objects.filter(pk=rule.event or 0, name=PUBLISHED).first()
    is_stated = event is not None and (event.data["grant"], event.data["seal"]) == (str(rule.pk), rule.seal)
    is_in_time = rule.until is not None and rule.until <= (last or rule.given_at) + scope.DECAY
    return is_stated and is_in_time and rule.used == uses


def _is_void(grant: Grant, uses: int, last: datetime | None) -> bool:
    why = scope.why_void(grant)
    if why is None and grant.is_earned:
        why = None if _is_as_published(grant, uses, last) else MISCOUNTED
    elif why is None:
        # It was given with a yes of that person to that call.
        yes = Decision.objects.filter(approval__grants=grant, person=grant.person, verdict=Verdict.APPROVE)
        why = None if grant.used == uses and yes.filter(means__in=scope.MEANS).exists() else MISCOUNTED
    if why is not None:
        _end(grant, End.VOIDED, SYSTEM, why)
    return why is not None
