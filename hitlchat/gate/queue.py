"""What waits for one person, the soonest deadline first: so many of it, whatever waits behind.

deciders.py has the rule. Here are only the ways on which an index leads to what may fulfil it, in order, so that a page
of fifty and a count up to a thousand cost the same in front of a hundred thousand.
"""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from hitlchat.gate import deciders
from hitlchat.gate.models import Approval, DecidedBy, Decision, ToolCall
from hitlchat.gate.status import Status

ORDER = ("deadline", "created_at", "pk")
# What deciders.py calls others: said again, since the index is for these alone.
RULED = ~Q(decided_by=DecidedBy.REQUESTER)


def first(user_id: int, most: int, only: Q | None = None) -> list[UUID]:
    """Ids of the calls, at most so many, that wait for this person; `only`: what else is asked of a ToolCall."""
    # Each by itself: of several no index has the soonest first.
    groups = deciders.Membership.objects.filter(user_id=user_id).values_list("group_id", flat=True)
    ways = [_waiting(user_id, only).filter(way) for way in _ways(user_id, *([group] for group in groups))]
    soonest = [ToolCall.objects.filter(pk__in=way.order_by(*ORDER).values("pk")[:most]) for way in ways]
    return [row[-1] for row in _either(soonest).order_by(*ORDER)[:most]]


def count(user_id: int, most: int, only: Q | None = None) -> int:
    """How many calls wait for this person; counted up to `most`, in one statement."""
    groups = deciders.Membership.objects.filter(user_id=user_id).values("group_id")
    ways = [_waiting(user_id, only).filter(way).order_by() for way in _ways(user_id, groups)]
    return min(most, _either([ToolCall.objects.filter(pk__in=way.values("pk")[:most]) for way in ways]).count())


def _either(ways: list[QuerySet[ToolCall]]) -> QuerySet[ToolCall, Any]:
    """Cut short one by one before, as no database knows how to stop early in a union."""
    rows, *rest = (way.order_by().values_list(*ORDER) for way in ways)
    return rows.union(*rest)


def among(user_id: int, call_ids: Collection[UUID]) -> QuerySet[Approval]:
    """Of these calls those that wait for this person."""
    rows = Approval.objects.filter(call__in=_waiting(user_id, Q(pk__in=call_ids)).order_by())
    return rows.select_related("call")


def _waiting(user_id: int, only: Q | None) -> QuerySet[ToolCall]:
    """The rule, and that they have not said yes already."""
    said = Decision.objects.filter(approval__call=OuterRef("pk"), person_id=user_id, round=OuterRef("round"))
    rows = ToolCall.objects.filter(only or Q(), deciders.entitled(user_id, by=Now()), status=Status.WAITING)
    return rows.exclude(Exists(said))


def _ways(user_id: int, *groups: Any) -> list[Q]:
    """In which somebody may come to decide, as the indexes have them: one after the other each is in order."""
    ways = [Q(decided_by=DecidedBy.REQUESTER, caller_id=user_id)]
    ways.append(RULED & Q(decided_by=DecidedBy.APPROVERS, decider_group__isnull=True))
    for of in groups:
        ways.append(RULED & Q(decided_by=DecidedBy.GROUP, decider_group__in=of))
        ways.append(Q(escalates_to__in=of, escalates_to__isnull=False))
    return ways
