"""Composing: from the record to notices, one for each burst, and to each receiver at most one in a while."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from hitlchat.base.canonical import storable
from hitlchat.gate import counting, deciders
from hitlchat.gate.models import Approval, AuditEvent, DecidedBy, ToolCall
from hitlchat.gate.status import Status
from hitlchat.notices.models import Heard, Installation, Item, ItemKind, Kind, Notice, NoticeKind, Receiver, State
from hitlchat.notices.wording import MOST_LISTED, Burst, Text, decided, waiting

SMTP: Final = "django.core.mail.backends.smtp.EmailBackend"
LATE_COMMIT: Final = timedelta(minutes=2)
NOTED_EVERY: Final = timedelta(minutes=1)
# Others use the same thread to reach the database: no batch keeps them waiting for long.
AT_ONCE: Final = 100
ASKED: Final = "call.waiting"
# In a chain, another group is asked.
PASSED_ON: Final = counting.PASSED_ON
OUTCOMES: Final = frozenset(
    f"call.{each.value}"
    for each in (Status.APPROVED, Status.DECLINED, Status.ANSWERED, Status.EXPIRED, Status.WITHDRAWN)
)
# So many wait for a receiver that does not answer; what comes meanwhile is told in one when it does, or they are given
# up.
MOST_DUE: Final = 5
KEPT: Final = timedelta(days=30)


def mail_is_off() -> bool:
    return settings.EMAIL_BACKEND == SMTP and not settings.EMAIL_HOST


class Audience:
    """The receivers as they are now, and who of them hears of which call."""

    def __init__(self) -> None:
        rows = Receiver.objects.filter(enabled=True).exclude(person__is_active=False)
        if mail_is_off():
            rows = rows.exclude(kind=Kind.EMAIL)
        self.receivers = list(rows.select_related("person__notice_wishes", "group"))
        self._people: dict[tuple[object, ...], set[int]] = {}

    def of(self, call: ToolCall) -> list[Receiver]:
        has_escalated = call.escalates_at is not None and call.escalates_at <= timezone.now()
        groups = {call.decider_group} if call.decided_by == DecidedBy.GROUP else set()
        groups |= {call.escalates_to} if has_escalated else set()
        found = []
        for each in self.receivers:
            if each.person_id is not None:
                may = each.person_id in self._deciders(call, has_escalated=has_escalated)
            else:
                may = each.group_id is None or each.group_id in groups
            wishes = each.wishes
            least_risk = max(each.least_risk, wishes.least_risk if wishes else 0)
            tools = wishes.tools if wishes else []
            if may and call.risk_level >= least_risk and (not tools or call.tool_name in tools):
                found.append(each)
        return found

    def _deciders(self, call: ToolCall, *, has_escalated: bool) -> set[int]:
        """Return the deciders, looked up once for all calls under the same rules."""
        rules = (call.decided_by, call.decider_group, call.not_the_requester, call.escalates_to)
        key = (*rules, has_escalated, call.caller_id)
        if key not in self._people:
            own = {each.person_id for each in self.receivers if each.person_id is not None}
            may = Q(pk__in=deciders.people(call)) | Q(pk__in=deciders.delegates(call))
            found = User.objects.filter(may, pk__in=own)
            self._people[key] = set(found.values_list("pk", flat=True))
        return self._people[key]


class Reading:
    """One look through the record, a batch at a time."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self._begun = timezone.now()
        # The last event that was taken in: the next batch need not look at all those before it again.
        self._after: AuditEvent | None = None

    def go_on(self) -> bool:
        """Turn what happened into items; whether there may be more. Of several processes one does at a time."""
        if not self._audience.receivers:
            return False
        # Looked at before it is locked: most of the time nothing happened, and nobody else has to wait for that.
        row = Installation.row()
        since = _start_of(row, self._audience)
        if not (_events(since, self._after).exists() or _escalated(since, self._begun).exists()):
            # So that what is read again stays short where nobody is asked about most of it.
            if row.looked_at is None or row.looked_at < self._begun - NOTED_EVERY:
                Installation.objects.filter(pk=row.pk, looked_at=row.looked_at).update(looked_at=self._begun)
            return False
        with transaction.atomic():
            locked = Installation.objects.select_for_update(skip_locked=True).filter(pk=1).first()
            return locked is not None and self._take_in(_start_of(locked, self._audience))

    def _take_in(self, since: datetime) -> bool:
        events = list(_events(since, self._after)[:AT_ONCE])
        calls = list(_escalated(since, self._begun)[:AT_ONCE])
        times = {each.call_id: each.at for each in events if each.name == ASKED and each.call_id}
        _add_waiting(times, self._audience, escalated=False)
        _add_outcomes([each for each in events if each.name in OUTCOMES])
        later = {each.pk: each.escalates_at for each in calls if each.escalates_at}
        later |= {each.call_id: each.at for each in events if each.name == PASSED_ON and each.call_id}
        _add_waiting(later, self._audience, escalated=True)
        Heard.objects.bulk_create([Heard(event_id=each.pk) for each in events])
        Heard.objects.bulk_create([Heard(call_id=each.pk, round=each.round) for each in calls])
        if AT_ONCE in (len(events), len(calls)):
            self._after = events[-1] if events else self._after
            return True
        Heard.objects.filter(at__lt=since - LATE_COMMIT).delete()
        Installation.objects.filter(pk=1).update(looked_at=self._begun)
        return False


def _start_of(row: Installation, audience: Audience) -> datetime:
    first = min(each.since for each in audience.receivers)
    return max(row.looked_at or first, first) - LATE_COMMIT


def _events(since: datetime, after: AuditEvent | None) -> QuerySet[AuditEvent]:
    heard = Heard.objects.filter(event_id=OuterRef("pk"))
    begin = Q(at__gt=since) if after is None else Q(at__gte=after.at) & (Q(at__gt=after.at) | Q(pk__gt=after.pk))
    rows: QuerySet[AuditEvent] = AuditEvent.objects.filter(begin, name__in=[ASKED, PASSED_ON, *OUTCOMES])
    return rows.filter(~Exists(heard)).defer("data").order_by("at", "pk")


def _escalated(since: datetime, now: datetime) -> QuerySet[ToolCall]:
    """Return waiting calls that a second group may decide by now, and could not before."""
    heard = Heard.objects.filter(call_id=OuterRef("pk"), round=OuterRef("round"))
    rows = ToolCall.objects.filter(escalates_to__isnull=False, status=Status.WAITING)
    return rows.filter(~Exists(heard), escalates_at__gt=since, escalates_at__lte=now).order_by("escalates_at", "pk")


def _add_waiting(times: Mapping[UUID, datetime], audience: Audience, *, escalated: bool) -> None:
    """Add items about calls that were asked, or escalated, or passed on, at these times.

    A new call is for receivers that existed when it was asked; one that others may decide since for all who have not
    heard of it in this round.
    """
    rows = Approval.objects.filter(call__in=times, call__status=Status.WAITING).select_related("call")
    approvals = list(rows.defer("disclosure", "call__arguments", "call__result", "call__output"))
    heard = Item.objects.filter(approval__in=approvals) if escalated else Item.objects.none()
    keys = set(heard.values_list("receiver_id", "approval_id", "round"))
    items = []
    for each in approvals:
        at, number = times[each.call_id], each.call.round
        for to in audience.of(each.call):
            if (escalated or at >= to.since) and (to.pk, each.pk, number) not in keys:
                items.append(Item(receiver=to, approval=each, round=number, kind=ItemKind.WAITING, at=at))
    Item.objects.bulk_create(items)


def _add_outcomes(events: list[AuditEvent]) -> None:
    """Add items about outcomes for those whose notice said that the call waits."""
    by_call = {each.call_id: each for each in events}
    heard = Item.objects.filter(
        approval__call__in=by_call,
        kind=ItemKind.WAITING,
        notice__isnull=False,
        receiver__enabled=True,
        receiver__tells_decided=True,
    ).select_related("approval")
    items = {}
    for each in heard:
        event = by_call[each.approval.call_id]
        items[each.receiver_id, each.approval_id] = Item(
            receiver_id=each.receiver_id,
            approval=each.approval,
            round=each.round,
            kind=ItemKind.DECIDED,
            outcome=event.name.removeprefix("call."),
            by_id=event.actor_id,
            at=event.at,
        )
    Item.objects.bulk_create(items.values())


def compose(audience: Audience) -> None:
    for receiver in audience.receivers:
        for kind, make in ((ItemKind.WAITING, _waiting), (ItemKind.DECIDED, _decided)):
            if _is_time(receiver, kind):
                _compose(receiver, kind, make)


def tidy() -> None:
    Notice.objects.filter(done_at__lt=timezone.now() - KEPT).delete()


def _untold(receiver: Receiver, kind: ItemKind) -> QuerySet[Item]:
    return Item.objects.filter(receiver=receiver, kind=kind, notice=None)


def _is_time(receiver: Receiver, kind: ItemKind) -> bool:
    now = timezone.now()
    first = _untold(receiver, kind).order_by("made_at").values_list("made_at", flat=True).first()
    if first is None or first > now - timedelta(seconds=settings.NOTICE_COLLECT_SECONDS):
        return False
    if receiver.quiet_hours(now):
        return False
    recent = Notice.objects.filter(receiver=receiver).exclude(kind=NoticeKind.TEST)
    if recent.filter(kind=kind, made_at__gt=now - timedelta(seconds=settings.NOTICE_INTERVAL_SECONDS)).exists():
        return False
    return recent.filter(state=State.DUE)[:MOST_DUE].count() < MOST_DUE


def _compose(receiver: Receiver, kind: ItemKind, make: Callable[[Notice, QuerySet[Item]], Text | None]) -> None:
    with transaction.atomic():
        # Another process that looks at the same time finds this one at it, or nothing left.
        locked = Receiver.objects.select_for_update(skip_locked=True, of=("self",)).filter(pk=receiver.pk)
        if not locked.exists() or not (ids := list(_untold(receiver, kind).values_list("pk", flat=True))):
            return
        items = Item.objects.filter(pk__gte=ids[0], pk__lte=ids[-1], receiver=receiver, kind=kind, notice=None)
        now = timezone.now()
        notice = Notice(receiver=receiver, kind=kind.value, made_at=now, next_try_at=now)
        text = make(notice, items)
        if text is None:
            items.delete()
            return
        notice.subject, notice.body = map(storable, text)
        notice.save(force_insert=True)
        items.update(notice=notice)


def _waiting(notice: Notice, items: QuerySet[Item]) -> Text | None:
    """Return the text about what waits; None where all of it has been answered."""
    receiver, now = notice.receiver, notice.made_at
    waits = Q(approval__call__status=Status.WAITING, approval__call__deadline__gt=now)
    if receiver.person_id is not None:
        # Only what they still may answer: they left no group, and said no yes since.
        waits &= Q(approval__in=deciders.waiting_for(receiver.person_id).values("pk"))
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
    first: datetime | None = items.order_by("made_at").values_list("made_at", flat=True).first()
    burst = Burst(
        items=tuple(shown.values()),
        waiting=count["waiting"],
        expired=count["expired"],
        answered=count["all"] - count["waiting"] - count["expired"],
        quiet=receiver.quiet_hours(first) if first else "",
        arguments=Installation.row().arguments,
    )
    return waiting(notice, burst)


def _decided(notice: Notice, items: QuerySet[Item]) -> Text | None:
    """Return the text about outcomes; None where they may not look at the calls any more."""
    listed = list(items.select_related("approval__call__caller", "by").order_by("-pk")[:MOST_LISTED])
    receiver, ids, shown = notice.receiver, [each.approval_id for each in listed], listed
    if receiver.person_id is not None:
        seen = set(deciders.seen_by(receiver.person_id, ids).values_list("pk", flat=True))
        shown = [each for each in listed if each.approval_id in seen]
    if not shown:
        return None
    count = items.count() - len(listed) + len(shown)
    sent = Item.objects.filter(receiver=receiver, approval__in=ids, kind=ItemKind.WAITING, notice__isnull=False)
    notices = {each.approval_id: each.notice for each in sent.select_related("notice").order_by("pk")}
    return decided(notice, shown, count, notices)
