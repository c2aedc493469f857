"""Composing: from what there is to tell to notices, one for each burst, and to each receiver at most one in a while.

Whatever a notice says is looked up when it is made: what has its outcome by then does not wait any more in it.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from hitlchat.gate import deciders
from hitlchat.gate.status import Status
from hitlchat.notices.hearing import Audience, quiet_hours
from hitlchat.notices.models import Installation, Item, ItemKind, Notice, NoticeKind, Receiver, State
from hitlchat.notices.wording import MOST_LISTED, Burst, Text, decided, waiting

# So many wait for a receiver that does not answer; what comes meanwhile is told in one when it does, or they are given
# up.
MOST_DUE = 5
KEPT = timedelta(days=30)


def compose(audience: Audience) -> None:
    """Make the notices whose time has come."""
    for receiver in audience.receivers:
        for kind, make in ((ItemKind.WAITING, _waiting), (ItemKind.DECIDED, _decided)):
            if _is_time(receiver, kind):
                _compose(receiver, kind, make)


def tidy() -> None:
    """The log goes back thirty days."""
    Notice.objects.filter(done_at__lt=timezone.now() - KEPT).delete()


def _untold(receiver: Receiver, kind: ItemKind) -> QuerySet[Item]:
    return Item.objects.filter(receiver=receiver, kind=kind, notice=None)


def _is_time(receiver: Receiver, kind: ItemKind) -> bool:
    now = timezone.now()
    first = _untold(receiver, kind).order_by("made_at").values_list("made_at", flat=True).first()
    if first is None or first > now - timedelta(seconds=settings.NOTICE_COLLECT_SECONDS):
        return False
    if (quiet := quiet_hours(receiver)) is not None and quiet.covers(now):
        return False
    recent = Notice.objects.filter(receiver=receiver).exclude(kind=NoticeKind.TEST)
    if recent.filter(kind=kind, made_at__gt=now - timedelta(seconds=settings.NOTICE_INTERVAL_SECONDS)).exists():
        return False
    return recent.filter(state=State.DUE)[:MOST_DUE].count() < MOST_DUE


def _compose(receiver: Receiver, kind: ItemKind, make: Callable[[Receiver, QuerySet[Item]], Text | None]) -> None:
    with transaction.atomic():
        # Whoever else looks at the same time finds nothing left, or another process to be at it.
        locked = Receiver.objects.select_for_update(skip_locked=True, of=("self",)).filter(pk=receiver.pk)
        if not locked.exists():
            return
        ids = list(_untold(receiver, kind).values_list("pk", flat=True))
        items = Item.objects.filter(pk__gte=ids[0], pk__lte=ids[-1], receiver=receiver, kind=kind, notice=None)
        text = make(receiver, items) if ids else None
        if text is None:
            items.delete()
            return
        now = timezone.now()
        notice = Notice(receiver=receiver, kind=kind.value, made_at=now, next_try_at=now)
        notice.subject, notice.body = text.subject, text.body(notice)
        notice.save(force_insert=True)
        items.update(notice=notice)


def _waiting(receiver: Receiver, items: QuerySet[Item]) -> Text | None:
    """None where all of it has been answered: nobody missed anything."""
    now = timezone.now()
    waits = Q(approval__call__status=Status.WAITING, approval__call__deadline__gt=now) & _still_theirs(receiver)
    late = Q(approval__call__status=Status.WAITING, approval__call__deadline__lte=now)
    expired = Q(approval__call__status=Status.EXPIRED) | late
    count = items.aggregate(
        waiting=Count("approval", distinct=True, filter=waits),
        expired=Count("approval", distinct=True, filter=expired),
        all=Count("approval", distinct=True),
    )
    if not count["waiting"] and not count["expired"]:
        return None
    rows = items.filter(waits).select_related("approval__call__caller")
    shown = {each.approval_id: each for each in rows.order_by("approval__call__deadline", "pk")[:MOST_LISTED]}
    burst = Burst(
        items=tuple(shown.values()),
        waiting=count["waiting"],
        expired=count["expired"],
        answered=count["all"] - count["waiting"] - count["expired"],
        quiet=_quiet(receiver, items),
        arguments=Installation.row().arguments,
    )
    return waiting(receiver, burst)


def _still_theirs(receiver: Receiver) -> Q:
    """Return the condition on items that their person still may answer: they left no group and said no yes since."""
    if receiver.person_id is None:
        return Q()
    return Q(approval__in=deciders.waiting_for(receiver.person_id).values("pk"))


def _quiet(receiver: Receiver, items: QuerySet[Item]) -> str:
    """Return which quiet hours held it back, if they did."""
    quiet = quiet_hours(receiver)
    first: datetime | None = items.order_by("made_at").values_list("made_at", flat=True).first()
    return str(quiet) if quiet and first and quiet.covers(first) else ""


def _decided(receiver: Receiver, items: QuerySet[Item]) -> Text | None:
    """None where all of it is about calls that they may not look at any more."""
    listed = list(items.select_related("approval__call", "by").order_by("-pk")[:MOST_LISTED])
    shown = _seen(receiver, listed)
    if not shown:
        return None
    count = items.count() - len(listed) + len(shown)
    ids = [each.approval_id for each in shown]
    told = Item.objects.filter(receiver=receiver, approval__in=ids, kind=ItemKind.WAITING, notice__isnull=False)
    notices = {each.approval_id: each.notice for each in told.select_related("notice").order_by("pk")}
    return decided(receiver, shown, count, notices)


def _seen(receiver: Receiver, items: list[Item]) -> list[Item]:
    if receiver.person_id is None:
        return items
    seen = set(deciders.seen_by(receiver.person_id, [each.approval_id for each in items]).values_list("pk", flat=True))
    return [each for each in items if each.approval_id in seen]
