"""Deciders: who may decide, when a yes needs a fresh sign-in, and whose yes counts.

One rule for calls, lists and pages.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, When
from django.db.models.functions import Coalesce, Now
from django.db.models.lookups import GreaterThan, LessThan
from django.utils.translation import gettext_noop

from hitlchat.accounts import roles
from hitlchat.accounts.models import Token
from hitlchat.base import database
from hitlchat.base.problems import Forbidden
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import Where, compiled, condition
from hitlchat.gate import oversight, question
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Absence, Approval, CallerKind, DecidedBy, Decision, Tool, ToolCall, Verdict
from hitlchat.gate.oversight import HIGHEST_RISK
from hitlchat.gate.status import Status

Membership = User.groups.through

# The clocks of this server and of its database may differ by so much.
SLACK = timedelta(minutes=1)

# For whom a yes counts: who gave it, or in whose place they did.
SEAT = Coalesce("absent_id", "person_id")


@dataclass(frozen=True)
class Yes:
    """One yes that counts: who gave it, for whom it does, and in a chain for which group."""

    person: int
    seat: int
    group: int | None


class NotEntitled(Forbidden):
    """The person sees the approval, and others decide it; the message says who."""


class SignInAgain(NotEntitled):
    """The person may decide, once they have signed in again."""

    def __init__(self) -> None:
        within = last_minutes(settings.HITL_FRESH_SIGN_IN_MINUTES)
        super().__init__(f"To approve a call of risk L{HIGHEST_RISK} you must have signed in within {within}.")


class OnlySignedIn(NotEntitled):
    """The person is known by a token or at the console, and not by having signed in."""

    def __init__(self) -> None:
        super().__init__(
            f"Only a person who has just signed in on a page here can approve a call of risk L{HIGHEST_RISK}."
        )


def entitled(person: Any, *, inner: Any = None, call: str = "", by: Any = None, group: str = "") -> Q:
    """Return the condition on rows with a `call` that this person may decide it, by the rules that it was asked under.

    `person`: an id, or an expression for it, which within subqueries is `inner`. `by`: the moment, which is now by the
    database's clock; others may have been let decide only after some time. `group`: where the row has the group that
    decides, if the call's own is not meant.
    """
    return reduce(or_, _ways(person, person if inner is None else inner, call, Now() if by is None else by, group))


def stands_in(user_id: Any) -> tuple[Q, ...]:
    """Return conditions on a ToolCall that this person may decide it now in the place of somebody who is away: the ways
    in which those may.

    Never around four eyes: not where the one it is called for is among those. A question has one person's answer.
    """
    away = Absence.current(delegate_id=user_id).values("person_id")
    groups = Membership.objects.filter(user_id__in=away).values("group_id")
    others = ~Q(decided_by=DecidedBy.REQUESTER)
    approvers = Q(Exists(roles.deciding(User.objects.filter(pk__in=away))))
    ways = (
        Q(decided_by=DecidedBy.REQUESTER, caller_id__in=away),
        Q(decided_by=DecidedBy.APPROVERS, decider_group__isnull=True) & others & approvers,
        Q(decided_by=DecidedBy.GROUP, decider_group__in=groups) & others,
        Q(escalates_to__in=groups, escalates_to__isnull=False, escalates_at__lte=Now()),
    )
    active = Q(Exists(User.objects.filter(pk=user_id, is_active=True)))
    allowed = active & _four_eyes(user_id, user_id, "") & ~Q(source=question.SOURCE)
    return tuple(way & allowed & Q(status=Status.WAITING) for way in ways)


def waiting_ways(user_id: Any) -> tuple[Q, ...]:
    """Return conditions on a ToolCall: it waits, and this person may decide it now.

    They are: as its requester, an approver, one of a group, or one who came in after some time. `user_id`: an id, or
    PERSON.
    """
    return tuple(way & Q(status=Status.WAITING) for way in _ways(user_id, user_id, "", Now()))


def may_decide(actor: Actor, call: ToolCall) -> bool:
    """Return whether the actor may decide now, by the rules that the call was asked under."""
    return _own_right(actor, call) is not None


def right_of(actor: Actor, call: ToolCall) -> tuple[bool, User | None]:
    """Return whether the actor may decide now, and in whose place; None: in their own right. Of several people in that
    of the first whose yes does not count yet.
    """
    own = _own_right(actor, call)
    if own is not False or actor.user_id is None:
        return own is not None, None
    rows = Absence.current(delegate_id=actor.user_id).select_related("person").order_by("since", "pk")
    may = [row.person for row in rows if _may_in_place_of(actor.user_id, row.person_id, [call.pk]).exists()]
    several = bool(may) and call.quorum > 1
    counts = {each.seat for each in seats(call) if each.person != actor.user_id} if several else set()
    absent = min(may, key=lambda person: person.pk in counts, default=None)
    return absent is not None, absent


def in_place_of(user_id: int, call_ids: Collection[UUID]) -> dict[UUID, Absence]:
    """Return for each of these calls that the person may decide now in somebody's place, and not in their own right,
    in whose.
    """
    found: dict[UUID, Absence] = {}
    if not call_ids:
        return found
    for row in Absence.current(delegate_id=user_id).select_related("person").order_by("-since", "-pk"):
        calls = _may_in_place_of(user_id, row.person_id, call_ids).exclude(entitled(user_id))
        found |= dict.fromkeys(calls.order_by().values_list("pk", flat=True), row)
    return found


def may_answer(actor: Actor, approval: Approval) -> bool:
    """Return whether the actor may decide, or is an MCP client whose word is enough for a call of its own."""
    call = approval.call
    if actor.means != "elicitation":
        return may_decide(actor, call)
    # Another client of the same person may be one at which nobody sits.
    is_its_token = actor.token_id is not None and call.token_id == actor.token_id
    is_its_own = call.caller_id == actor.user_id and call.caller_kind == CallerKind.MCP and is_its_token
    return is_its_own and call.tool is not None and will_do(call.tool, approval)


def sees(actor: Actor, approval: Approval) -> bool:
    """Return whether the actor may answer, is the person it is called for, or has answered it in a chain."""
    if (actor.is_person and approval.call.caller_id == actor.user_id) or may_answer(actor, approval):
        return True
    has_turns = actor.is_person and bool(oversight.in_turn(approval.disclosure["whoDecides"]))
    return has_turns and approval.decisions.filter(person_id=actor.user_id, for_group__isnull=False).exists()


def will_do(tool: Tool, approval: Approval | None = None) -> bool:
    """Return whether an MCP client's word is enough, by what holds for `tool` now; else a signed-in person decides.

    Of an open `approval` also by what held when it was asked, and whether its client was trusted then and is now.
    Before a call is asked about, whoever calls this knows the client's token.
    """
    # What others decide, or several, is not for the client of one of them to say.
    if tool.signed_in_only or tool.care > settings.HITL_ELICITATION_MAX_RISK or hasattr(tool, "oversight"):
        return False
    if approval is None:
        return True
    return was_enough(approval) and is_attended(approval.call.token_id)


def was_enough(approval: Approval) -> bool:
    """Return whether the word of the MCP client that called was enough by what held when it was asked."""
    shown = approval.disclosure
    if not _is_plain(approval.call) or shown.get("attended") is not True or shown.get("signedInOnly") is not False:
        return False
    return max(approval.call.risk_level, oversight.care(shown)) <= settings.HITL_ELICITATION_MAX_RISK


def is_attended(token_id: int | None) -> bool:
    """Return whether an administrator trusts the client that shows this token, as of now."""
    return token_id is not None and Token.attended_now().filter(pk=token_id).exists()


def what_signed_in_only_means() -> str:
    """Explain the setting of a tool, for the person who sets it."""
    most = settings.HITL_ELICITATION_MAX_RISK
    words = gettext_noop("No MCP client can approve for its user: it sends them to a page of this server.")
    return words + (f" {translatable(f'This is always the case above L{most}.')}" if most < HIGHEST_RISK else "")


def still_may_answer(actor: Actor, call: ToolCall, absent: User | None = None) -> Where:
    """Return the condition, in the moment that `call` is moved: what was read of rules, groups and settings may have
    been changed since.

    Without a join: on PostgreSQL whatever an UPDATE finds by a join is not looked at again after waiting for a lock.
    """
    if actor.means == "elicitation":
        enough = Tool.objects.exclude(_above(settings.HITL_ELICITATION_MAX_RISK)).filter(signed_in_only=False)
        attended = Token.attended_now().filter(pk=actor.token_id or 0)
        its_own = Q(tool_id__in=enough.values("pk"), token_id__in=attended.values("pk"), oversight_digest="")
        return Where(rest=its_own & oversight.stands())
    # Whoever is nobody is not the caller of any call.
    user_id = actor.user_id or 0
    if absent is not None:
        return _is_entitled_for(user_id, absent.pk)
    return _is_of(user_id) if _is_plain(call) else _is_entitled(user_id)


def looked_at(person: User | None, call_ids: Collection[str]) -> set[str]:
    """Return which of these calls a person may look at, as somebody who decides or administers."""
    if person is None:
        return set()
    every = [Q()] if roles.may_administer(person) else seeing(person.pk)
    return {
        str(each) for each in ToolCall.objects.filter(reduce(or_, every), pk__in=call_ids).values_list("pk", flat=True)
    }


def seen_by(user_id: int, among: Collection[UUID] | None = None) -> QuerySet[Approval]:
    """The approvals this person may look at, waiting or settled: their own, and what they may decide or could have.

    `among`: of those with these ids only, which costs the same however many others there are.
    """
    these = Q() if among is None else Q(approval__in=among)
    return _approvals_of(*(way & these for way in (*seeing(user_id), *_seen_besides(user_id))))


def one_seen_by(user_id: int, approval_id: UUID) -> Approval | None:
    return _one_seen(user_id, approval_id).one()


def seeing(user_id: Any) -> tuple[Q, ...]:
    """Return conditions on calls: the ways in which this person may look at one, each with an index of its own."""
    # Who was to decide later only, and was not needed, has not been let in.
    ways = _ways(user_id, user_id, "", Coalesce(F("settled_at"), Now()))
    return Q(caller_id=user_id), *ways[1:]


def waiting_for(user_id: Any, only: Q | None = None) -> QuerySet[Approval]:
    """Return what waits for an answer of this person: what they may decide, and have not said yes to.

    `only`: what else is asked of a ToolCall.
    """
    own_yes = Decision.objects.filter(approval=OuterRef("pk"), person_id=user_id, round=OuterRef("call__round"))
    rows = _approvals_of(*(way & (only or Q()) for way in (*waiting_ways(user_id), *stands_in(user_id))))
    return rows.filter(call__status=Status.WAITING).exclude(Exists(own_yes))


def waiting_by_conversation(user_id: int) -> dict[UUID, int]:
    """Count the calls of this person that wait for their own answer, by conversation."""
    return {conversation_id: times for conversation_id, times in _by_conversation(user_id) if conversation_id}


def counted(**which: Any) -> QuerySet[Decision]:
    """The yeses to the questions that are open (`which` of them, as fields of decisions) that count: of people who may
    decide still, to what is asked now. In the place of somebody else: while that may, and the absence lasts.
    """
    inner = Coalesce(OuterRef("absent_id"), OuterRef("person_id"))
    lasts = Absence.current(person_id=OuterRef("absent_id"), delegate_id=OuterRef("person_id"))
    of_delegate = Q(Exists(lasts)) & _four_eyes(F("person_id"), OuterRef("person_id"), "approval__call__")
    # In a chain, of people of the group whose turn it was.
    rows = Decision.objects.alias(whose=Coalesce("for_group", "approval__call__decider_group")).filter(
        entitled(SEAT, inner=inner, call="approval__call__", group="whose") & (Q(absent__isnull=True) | of_delegate),
        verdict=Verdict.APPROVE,
        round=F("approval__call__round"),
        digest=F("approval__digest"),
    )
    return rows.filter(**which)


def seats(call: ToolCall) -> list[Yes]:
    """Return the yeses to an open question that count: of several for one person, one does."""
    rows = counted_of(call.approval.pk)
    return [Yes(each.person_id, each.absent_id or each.person_id, each.for_group) for each in rows]


@compiled
def counted_of(approval_id: UUID) -> QuerySet[Decision]:
    """The yeses to one open question that count, with who gave them."""
    return counted(approval_id=approval_id).select_related("person")


def delegates(call: ToolCall) -> QuerySet[User]:
    """Return everyone who may decide the call now in the place of somebody else."""
    if question.is_one(call):
        return User.objects.none()
    absent = Absence.current(person__in=people(call).values("pk"))
    them = User.objects.filter(pk__in=absent.values("delegate"))
    if not call.not_the_requester:
        return them
    close = Absence.current(person_id=call.caller_id).values("delegate")
    return them.exclude(Q(pk=call.caller_id) | Q(pk__in=close))


def people(call: ToolCall) -> QuerySet[User]:
    """Return everyone who may decide the call now, in their own right."""
    return _people(call.pk, Now())


@compiled
def able(call_id: UUID) -> QuerySet[User]:
    """Everyone who may decide the call before its deadline."""
    return _people(call_id, F("deadline"))


def last_minutes(minutes: int) -> str:
    return gettext_noop("the last minute") if minutes == 1 else translatable(f"the last {minutes} minutes")


def require(actor: Actor, approval: Approval) -> None:
    """Require a fresh sign-in where the call needs one. Raises: SignInAgain, OnlySignedIn."""
    # The word of a client has rules of its own.
    if actor.means == "elicitation" or not is_asked_of(approval):
        return
    if actor.means != "session":
        raise OnlySignedIn
    at, now = actor.signed_in_at, database.now()
    if at is None or not now - lasts() < at < now + SLACK:
        raise SignInAgain


def is_asked_of(approval: Approval) -> bool:
    """Return whether a yes needs a fresh sign-in."""
    return care(approval) >= HIGHEST_RISK


def care(approval: Approval) -> int:
    """Return the level that what a yes needs goes by: of when it was asked, or of its tool now if that is higher."""
    call = approval.call
    return max(call.risk_level, oversight.care(approval.disclosure), call.tool.care if call.tool else 0)


def still(actor: Actor, approval: Approval) -> Where:
    """Return the condition, by the database's clock when the call is moved, that the sign-in is still fresh enough."""
    if actor.means == "elicitation":
        return Where()
    if actor.means != "session" or actor.signed_in_at is None:
        return _is_mild()
    until, since = actor.signed_in_at + lasts(), actor.signed_in_at - SLACK
    return _is_fresh(until, since) if is_asked_of(approval) else _is_mild_or_fresh(until, since)


def lasts() -> timedelta:
    return timedelta(minutes=settings.HITL_FRESH_SIGN_IN_MINUTES)


def quorum_is_reached(approval: Approval, call: ToolCall) -> bool:
    """Return whether enough people said yes to what was asked last; in a chain, another one for each of its groups."""
    shown = approval.disclosure["whoDecides"]
    if groups := oversight.in_turn(shown):
        found = {each.absent_id or each.person_id: each.for_group for each in yeses(approval.pk, call.round)}
        return {*groups} <= {*found.values()}
    quorum = max(call.quorum, int(shown["quorum"]))
    return _approving(approval.pk, call.round).count(quorum) >= quorum


@compiled
def yeses(approval_id: UUID, number: int) -> QuerySet[Decision]:
    """The yeses to what was asked in one round."""
    return Decision.objects.filter(approval_id=approval_id, round=number, verdict=Verdict.APPROVE)


@compiled
def _approving(approval_id: UUID, number: int) -> QuerySet[Decision, int]:
    """For whom the yeses of one round were given: that of a delegate and that of who was away are one."""
    rows: QuerySet[Decision] = yeses.define(approval_id, number)
    return rows.order_by().values_list(SEAT, flat=True).distinct()


@condition
def _is_of(user_id: int) -> Q:
    return Q(oversight_digest="", caller_id=user_id) & oversight.stands()


@condition
def _is_entitled(user_id: int) -> Q:
    return entitled(user_id) & oversight.stands()


@condition
def _is_entitled_for(user_id: int, absent_id: int) -> Q:
    return _may_for(user_id, absent_id) & oversight.stands()


def _may_for(user_id: Any, absent_id: Any) -> Q:
    """Return the condition on a ToolCall that the person may decide it in the place of the absent one."""
    lasts = Q(Exists(Absence.current(person_id=absent_id, delegate_id=user_id)))
    return entitled(absent_id) & lasts & _four_eyes(user_id, user_id, "") & ~Q(source=question.SOURCE)


@condition
def _is_mild() -> Q:
    risky = Tool.objects.filter(_above(HIGHEST_RISK - 1)).values("pk")
    return Q(risk_level__lt=HIGHEST_RISK) & ~Q(tool_id__in=risky)


def _above(level: int) -> Q:
    """Return the condition on tools that more care than that of `level` is needed."""
    return Q(risk_level__gt=level) | Q(risk_inherent__gt=level)


@condition
def _is_mild_or_fresh(until: datetime, since: datetime) -> Q:
    found: Q = _is_mild.define() | _is_fresh.define(until, since)
    return found


@condition
def _is_fresh(until: datetime, since: datetime) -> Q:
    return Q(GreaterThan(until, Now()), LessThan(since, Now()))


def _ways(person: Any, inner: Any, call: str, by: Any, group: str = "") -> tuple[Q, ...]:
    """Return the ways in which somebody may come to decide: each has an index of its own."""
    groups = Membership.objects.filter(user_id=inner).values("group_id")
    active = User.objects.filter(pk=inner, is_active=True)

    def of(**columns: Any) -> Q:
        return Q(**{f"{call}{name}": value for name, value in columns.items()})

    # Said again, since an index is for these alone.
    others = ~of(decided_by=DecidedBy.REQUESTER)
    ways = (
        of(decided_by=DecidedBy.REQUESTER, caller_id=person),
        of(decided_by=DecidedBy.APPROVERS, decider_group__isnull=True) & others & Q(Exists(roles.deciding(active))),
        of(decided_by=DecidedBy.GROUP) & Q(**{f"{group or f'{call}decider_group'}__in": groups}) & others,
        of(escalates_to__in=groups, escalates_to__isnull=False, escalates_at__lte=by),
    )
    allowed = Q(Exists(active)) & _four_eyes(person, inner, call)
    return tuple(way & allowed for way in ways)


def _four_eyes(person: Any, inner: Any, call: str) -> Q:
    """Return the condition that the person may decide under four eyes, or that there are none: they are not who it is
    called for, nor the delegate of them.
    """
    own = Q(**{f"{call}not_the_requester": True, f"{call}caller_id": person})
    close = Absence.current(person_id=OuterRef(f"{call}caller_id"), delegate_id=inner)
    return ~own & ~(Q(**{f"{call}not_the_requester": True}) & Q(Exists(close)))


def _seen_besides(user_id: Any) -> tuple[Q, ...]:
    """Return the ways in which somebody may look at a call of others: it waits for them as a delegate, or they answered
    it as one, or in a chain.
    """
    answered = Decision.objects.filter(Q(absent__isnull=False) | Q(for_group__isnull=False), person_id=user_id)
    return *stands_in(user_id), Q(pk__in=answered.values("approval__call"))


def _approvals_of(*ways: Q) -> QuerySet[Approval]:
    """Return approvals of the calls that `ways` lead to, as a union: of alternatives no database uses the indexes."""
    first, *rest = (ToolCall.objects.filter(way).order_by().values("pk") for way in ways)
    return Approval.objects.select_related("call").filter(call__in=first.union(*rest))


@compiled
def _one_seen(user_id: int, approval_id: UUID) -> QuerySet[Approval]:
    ways = (*seeing(user_id), *_seen_besides(user_id))
    return _approvals_of(*(way & Q(approval__pk=approval_id) for way in ways)).select_related("call__tool")


@compiled
def _by_conversation(user_id: int) -> QuerySet[Any, tuple[UUID | None, int]]:
    rows = waiting_for(user_id, Q(caller_id=user_id, conversation_id__isnull=False)).order_by()
    grouped = rows.values("call__conversation_id").annotate(times=Count("pk"))
    return grouped.values_list("call__conversation_id", "times")


def _own_right(actor: Actor, call: ToolCall) -> bool | None:
    """Return whether the actor may decide now in their own right, which costs no query of who is asked about a call of
    their own; False: in somebody's place; None: not at all.
    """
    if not actor.is_person or actor.user_id is None:
        return None
    if _is_plain(call) and call.caller_id == actor.user_id:
        return True
    if _is_plain(call):
        return False if _in_a_place(actor.user_id, call.pk).exists() else None
    return _right(actor.user_id, call.pk).one()


@compiled
def _in_a_place(user_id: int, call_id: UUID) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(reduce(or_, stands_in(user_id)), pk=call_id)


@compiled
def _right(user_id: int, call_id: UUID) -> QuerySet[ToolCall, bool]:
    """Whether the person may decide in their own right, if they may at all."""
    own = entitled(user_id)
    rows = ToolCall.objects.filter(reduce(or_, (own, *stands_in(user_id))), pk=call_id)
    return rows.annotate(own=Case(When(own, then=True), default=False)).values_list("own", flat=True)


def _people(call_id: Any, by: Any) -> QuerySet[User]:
    rows = ToolCall.objects.filter(entitled(OuterRef("pk"), inner=OuterRef(OuterRef("pk")), by=by), pk=call_id)
    return User.objects.filter(Exists(rows))


def _may_in_place_of(user_id: int, absent_id: int, call_ids: Collection[UUID]) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(_may_for(user_id, absent_id), pk__in=call_ids)


def _is_plain(call: ToolCall) -> bool:
    """Return whether it was asked about under no rules of its tool's own: the person it is called for decides."""
    return call.oversight_digest == ""
