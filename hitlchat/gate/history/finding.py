"""Who may look up which calls, and finding them: the newest first, page by page, however many there are."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from hitlchat.accounts.roles import may_administer
from hitlchat.gate import deciders
from hitlchat.gate.history.decided import decided, is_decided
from hitlchat.gate.history.wanted import Wanted
from hitlchat.gate.models import ToolCall

ORDER = ("-created_at", "-id")


def ways(user: User) -> tuple[Q, ...]:
    """In which `user` may look at a call: administrators at all; others at calls that were made for them, that they may
    or could have decided, and that they decided, whatever they may decide by now."""
    if may_administer(user):
        return (Q(),)
    return *deciders.seeing(user.pk), decided(person=user)


def own(user: User) -> tuple[Q, ...]:
    """Only calls that were made for `user`, whatever else they may look at."""
    return (Q(caller=user),)


def one(user: User, call_id: UUID) -> QuerySet[ToolCall]:
    """The call with this id, if `user` may look at it. Costs the same however many others there are."""
    every = (Q(),) if may_administer(user) else (*deciders.seeing(user.pk), is_decided(person=user))
    first, *rest = (ToolCall.objects.filter(way, pk=call_id).order_by().values("pk") for way in every)
    return ToolCall.objects.filter(pk__in=first.union(*rest) if rest else first)


def page(
    among: tuple[Q, ...],
    wanted: Wanted,
    size: int,
    *,
    before: ToolCall | None = None,
    rows: QuerySet[ToolCall] | None = None,
) -> list[ToolCall]:
    """So many calls at most, the newest first, which come behind `before`. `rows`: with what is to be read along.

    Each way by itself, by its own index, and of each no more than fit: of alternatives no database uses the indexes.
    Ids first: rows may be large, and what is left out of them at the end need not have been read.
    """
    found: set[tuple[datetime, UUID]] = set()
    for each in _each(among, wanted, ToolCall.objects.all()):
        narrowed = each if before is None else each.filter(older(before))
        found |= {*narrowed.order_by(*ORDER).values_list("created_at", "pk")[:size]}
    ids = [pk for _, pk in sorted(found, reverse=True)[:size]]
    read = (ToolCall.objects.all() if rows is None else rows).in_bulk(ids)
    return [read[pk] for pk in ids if pk in read]


def count(among: tuple[Q, ...], wanted: Wanted, most: int | None = None) -> int:
    """How many there are; counting stops at `most`."""
    first, *rest = (each.order_by().values("pk") for each in _each(among, wanted, ToolCall.objects.all()))
    every = first.union(*rest) if rest else first
    return every.count() if most is None else len(every[:most])


def older(call: ToolCall) -> Q:
    """Of calls: those that come behind this one."""
    # The moment first and alone: an index leads to it.
    return Q(created_at__lte=call.created_at) & (Q(created_at__lt=call.created_at) | Q(pk__lt=call.pk))


def _each(among: tuple[Q, ...], wanted: Wanted, rows: QuerySet[ToolCall]) -> Iterator[QuerySet[ToolCall]]:
    return (wanted.narrowed(rows.filter(way)) for way in among)
