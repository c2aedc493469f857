"""What waits for one person, the soonest deadline first: so many of it, whatever waits behind.

deciders.py has the rule. Each of its ways has an index that leads along it in order, so that a page of fifty and a
count up to a thousand cost the same in front of a hundred thousand.
"""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from hitlchat.gate import deciders
from hitlchat.gate.models import Approval, Decision, ToolCall

ORDER = ("deadline", "created_at", "pk")


def first(user_id: int, most: int, only: Q | None = None) -> list[UUID]:
    """Ids of the calls, at most so many, that wait for this person; `only`: what else is asked of a ToolCall."""
    groups = deciders.Membership.objects.filter(user_id=user_id).values_list("group_id", flat=True)
    requester, approver, grouped, later = deciders.waiting_ways(user_id)
    # Each group by itself: of several no index has the soonest first.
    of_groups = [way for group in groups for way in (grouped & Q(decider_group=group), later & Q(escalates_to=group))]
    rows = [_waiting(user_id, way, only).order_by(*ORDER) for way in (requester, approver, *of_groups)]
    return [row[-1] for row in _either(rows, most).order_by(*ORDER)[:most]]


def count(user_id: int, most: int, only: Q | None = None) -> int:
    """How many calls wait for this person; counted up to `most`, in one statement."""
    rows = [_waiting(user_id, way, only).order_by() for way in deciders.waiting_ways(user_id)]
    return min(most, _either(rows, most).count())


def among(user_id: int, call_ids: Collection[UUID]) -> QuerySet[Approval]:
    """Of these calls those that wait for this person."""
    return deciders.waiting_for(user_id, Q(pk__in=call_ids))


def _waiting(user_id: int, way: Q, only: Q | None) -> QuerySet[ToolCall]:
    """And that they have not said yes already."""
    said = Decision.objects.filter(approval__call=OuterRef("pk"), person_id=user_id, round=OuterRef("round"))
    return ToolCall.objects.filter(way, only or Q()).exclude(Exists(said))


def _either(ways: list[QuerySet[ToolCall]], most: int) -> QuerySet[ToolCall, Any]:
    """Cut short one by one before, as no database knows how to stop early in a union."""
    cut = [ToolCall.objects.filter(pk__in=way.values("pk")[:most]).order_by().values_list(*ORDER) for way in ways]
    return cut[0].union(*cut[1:])
