"""The grants that a person may see: their own; administrators see all."""

from typing import Final, Literal, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from hitlchat.accounts.roles import may_administer
from hitlchat.gate.grants import standing
from hitlchat.gate.models import CallerKind, Grant

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
