"""The queue: what waits for one person, the soonest deadline first, and how many questions may be open (SR-41).

Identical calls that wait together have one card, with one deadline and one answer.

deciders.py has the rule. Each of its ways has an index that leads along it in order, so that a page of fifty and a
count up to a thousand cost the same in front of a hundred thousand.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Count, Exists, IntegerField, OuterRef, Q, QuerySet, Value

from hitlchat.base.statements import MOST, compiled
from hitlchat.gate import deciders
from hitlchat.gate.models import Absence, Approval, Decision, ToolCall
from hitlchat.gate.status import Status

ORDER = ("deadline", "created_at", "pk")

TOO_MANY_HERE = "As many questions are open in this conversation as may be. Let some of them be answered first."
TOO_MANY = "As many questions are open for this person as may be. Let some of them be answered first."
# With these a call is refused by no policy.
REASONS = (TOO_MANY_HERE, TOO_MANY)
# Tells its locks from those of others in the database.
LOCKS = 0x6869746C


@dataclass(frozen=True)
class Waiting:
    """The facts of a waiting call that pages need."""

    approval_id: UUID
    call_id: UUID
    tool_name: str
    round: int
    called_at: datetime


def first(user_id: int, most: int, only: Q | None = None) -> list[UUID]:
    """Ids of the calls, at most so many, that wait for this person; `only`: what else is asked of a ToolCall."""
    found = {group for (group,) in _groups(user_id)}
    groups, is_delegate = [group for group in found if group is not None], None in found
    if only is not None or len(groups) > MOST:
        return [row[-1] for row in _in_order(user_id, groups, is_delegate, most, only)]
    # A list has at least one value: 0 is no group.
    return [row[-1] for row in _soonest(most, len(groups), is_delegate)(user_id, groups or [0])]


def count(user_id: int, most: int, only: Q | None = None) -> int:
    """Return how many calls wait for this person; counted up to `most`, in one statement."""
    found = _all(most)(user_id).count(most) if only is None else _every(user_id, most, only).count()
    return min(most, found)


def among(user_id: int, call_ids: Collection[UUID]) -> list[Waiting]:
    """Return which of these calls wait for this person; nothing is asked about none."""
    if not call_ids:
        return []
    return [Waiting(*row) for row in _among(user_id, [*call_ids])]


def leads(rows: Iterable[Approval]) -> list[tuple[Approval, int]]:
    """Return the waiting approvals that get a card: of identical ones the first, with how many there are."""
    found: dict[str, list[Approval]] = {}
    for row in rows:
        found.setdefault(row.same or str(row.pk), []).append(row)
    return [(same[0], len(same)) for same in found.values()]


def times(waiting: Iterable[Approval]) -> dict[UUID, int]:
    """Return how often the call of each of these, which wait, is asked about; in one query for all of them."""
    rows = list(waiting)
    joined = Approval.objects.filter(
        same__in={row.same for row in rows if row.same},
        call__conversation_id__in={row.call.conversation_id for row in rows},
        call__status=Status.WAITING,
    )
    counts = dict(joined.order_by().values_list("same").annotate(Count("pk")))
    return {row.pk: counts.get(row.same, 1) for row in rows}


def twins(approval: Approval) -> list[Approval]:
    """Return the waiting approvals that are identical to this one, which need not wait itself."""
    call = approval.call
    if not approval.same or call.conversation_id is None:
        return []
    return list(_twins(approval.pk, approval.same, call.caller_id, call.conversation_id))


def reason(caller_id: int, conversation_id: UUID | None) -> str:
    """Return why no further question may be opened; empty if one may.

    Within the transaction that opens it: until that ends nobody else opens one for the same person, so that the limits
    hold exactly.
    """
    if is_full(caller_id, conversation_id):
        return TOO_MANY_HERE
    most = settings.HITL_MAX_WAITING_PER_CALLER
    return "" if _open(caller_id).count(most) < most else TOO_MANY


def is_full(caller_id: int, conversation_id: UUID | None) -> bool:
    """Return whether this conversation has as many open questions as it may.

    Within the transaction that would open one.
    """
    # On SQLite whoever writes has the database for themselves already.
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCKS, caller_id])
    return room(caller_id, conversation_id) < 1


def room(caller_id: int, conversation_id: UUID | None) -> int:
    """Return how many more questions may be opened in this conversation, as of now.

    Without one there is always room.
    """
    if conversation_id is None:
        return 1
    most = settings.HITL_MAX_WAITING_PER_CONVERSATION
    return most - _open_here(caller_id, conversation_id).count(most)


@compiled
def _groups(user_id: int) -> QuerySet[Any, tuple[int | None]]:
    """The person's groups; one without a number: the person is somebody's delegate."""
    member = deciders.Membership.objects.filter(user_id=user_id).values_list("group_id")
    return member.union(Absence.current(delegate_id=user_id).values_list(Value(None, output_field=IntegerField())))


@cache
def _soonest(most: int, number: int, is_delegate: bool) -> compiled[[int, list[int]], Any]:
    """For people in so many groups."""

    @compiled
    def soonest(user_id: int, groups: list[int]) -> QuerySet[ToolCall, Any]:
        return _in_order(user_id, groups[:number], is_delegate, most)

    return soonest


def _in_order(
    user_id: Any, groups: list[int], is_delegate: bool, most: int, only: Q | None = None
) -> QuerySet[ToolCall, Any]:
    requester, approver, grouped, later = deciders.waiting_ways(user_id)
    # Each group by itself, as of several no index has the soonest first; for more no statement has room.
    each = [way for group in groups for way in (grouped & Q(decider_group=group), later & Q(escalates_to=group))]
    of_groups = each if len(groups) <= MOST else [grouped, later]
    ways = (requester, approver, *of_groups, *(deciders.stands_in(user_id) if is_delegate else ()))
    rows = [_waiting(user_id, way, only).order_by(*ORDER) for way in ways]
    return _either(rows, most).order_by(*ORDER)[:most]


@compiled
def _among(user_id: int, call_ids: list[UUID]) -> QuerySet[Approval, tuple[UUID, UUID, str, int, datetime]]:
    rows = deciders.waiting_for(user_id, Q(pk__in=call_ids))
    return rows.values_list("pk", "call_id", "call__tool_name", "call__round", "call__created_at")


@cache
def _all(most: int) -> compiled[[int], Any]:
    @compiled
    def counted(user_id: int) -> QuerySet[ToolCall, Any]:
        return _every(user_id, most)

    return counted


def _every(user_id: Any, most: int, only: Q | None = None) -> QuerySet[ToolCall, Any]:
    """Return at least `most` of what waits for this person, if there is as much."""
    ways = (*deciders.waiting_ways(user_id), *deciders.stands_in(user_id))
    rows = [_waiting(user_id, way, only).order_by() for way in ways]
    return _either(rows, most)


def _waiting(user_id: Any, way: Q, only: Q | None) -> QuerySet[ToolCall]:
    """Return the calls that wait for them and that they have not said yes to already."""
    own_yes = Decision.objects.filter(approval__call=OuterRef("pk"), person_id=user_id, round=OuterRef("round"))
    # What one yes is enough for waits no longer after it: nothing is looked up for it.
    return ToolCall.objects.filter(way, only or Q()).exclude(Q(quorum__gt=1) & Exists(own_yes))


def _either(ways: list[QuerySet[ToolCall]], most: int) -> QuerySet[ToolCall, Any]:
    """Cut short one by one before, as no database knows how to stop early in a union."""
    cut = [way.values_list(*ORDER)[:most] for way in ways]
    if not connection.features.supports_slicing_ordering_in_compound:
        # PostgreSQL, which needs no such detour, may count all of them anew for each that it looks up.
        cut = [ToolCall.objects.filter(pk__in=way.values("pk")).order_by().values_list(*ORDER) for way in cut]
    return cut[0].union(*cut[1:])


@compiled
def _twins(approval_id: UUID, same: str, caller_id: int, conversation_id: UUID) -> QuerySet[Approval]:
    here = {"call__caller_id": caller_id, "call__conversation_id": conversation_id}
    rows = Approval.objects.select_related("call").filter(same=same, call__status=Status.WAITING, **here)
    return rows.exclude(pk=approval_id)


@compiled
def _open(caller_id: int) -> QuerySet[ToolCall, UUID]:
    rows = ToolCall.objects.order_by().filter(status=Status.WAITING, caller_id=caller_id)
    return rows.values_list("pk", flat=True)


@compiled
def _open_here(caller_id: int, conversation_id: UUID) -> QuerySet[ToolCall, UUID]:
    rows = ToolCall.objects.order_by().filter(status=Status.WAITING, caller_id=caller_id)
    return rows.filter(conversation_id=conversation_id).values_list("pk", flat=True)
