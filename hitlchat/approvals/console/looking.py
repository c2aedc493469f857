"""What waits, the most urgent first, and one approval with its card."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet

from hitlchat.gate import card, deciders, joining
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card
from hitlchat.gate.decide import NoSuchApproval
from hitlchat.gate.models import Approval, Decision
from hitlchat.gate.status import Status

# Read at once; what is asked for is nearly always among the first of them.
AT_ONCE = 200
NOWHERE = "There is no approval with this id."
LARGE = ("disclosure", "call__arguments", "call__result", "call__error", "call__output")


class NobodyNamed(LookupError):
    """Nobody with this name may sign in."""


def person(name: str) -> User:
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        raise NobodyNamed(f"There is nobody named {name!r} who may sign in.")
    return found


def waiting(who: User | None = None, *, tool: str = "", risk: int = 0) -> QuerySet[Approval]:
    """Of everyone, or what `who` may answer; of `tool` only, and of this `risk` or higher. In the order in which their
    time runs out; of everyone on the index of the calls that wait, however many there are."""
    rows = deciders.waiting_for(who.pk) if who else Approval.objects.filter(call__status=Status.WAITING)
    rows = rows.filter(call__tool_name=tool) if tool else rows
    rows = rows.filter(call__risk_level__gte=risk) if risk else rows
    return rows.select_related("call__caller").defer(*LARGE).order_by("call__deadline", "pk")


def unseen(rows: QuerySet[Approval], seen: set[tuple[UUID, int]]) -> Iterator[tuple[UUID, int]]:
    """The id and the round of each question among `rows` that is not in `seen`; read as far as it is needed."""
    start = 0
    ids = rows.values_list("pk", "call__round")
    while page := list(ids[start : start + AT_ONCE]):
        yield from (key for key in page if key not in seen)
        start += AT_ONCE


def approval(approval_id: UUID) -> Approval:
    """NoSuchApproval."""
    rows = Approval.objects.select_related("call__tool", "call__caller")
    found = rows.filter(pk=approval_id).first()
    if found is None:
        raise NoSuchApproval(NOWHERE)
    return found


def card_of(found: Approval, viewer: Actor | None = None) -> Card:
    """As the page has it. KeyError when an older record lacks a part of it."""
    shown = card.card(found, viewer)
    return replace(shown, times=joining.times([found])[found.pk]) if found.call.status == Status.WAITING else shown


def decisions(found: Approval) -> list[Decision]:
    return list(found.decisions.select_related("person"))


def among(ids: list[UUID]) -> QuerySet[Approval]:
    """Without what is large, in the order in which they were asked."""
    return Approval.objects.filter(pk__in=ids).select_related("call__caller").defer(*LARGE).order_by("pk")
