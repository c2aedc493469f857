"""Hearing: what there is to tell, read from the record, and to whom, as far as they want and not in quiet hours."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from hitlchat.gate import deciders
from hitlchat.gate.models import Approval, AuditEvent, DecidedBy, ToolCall
from hitlchat.gate.status import Status
from hitlchat.notices.models import Heard, Installation, Item, ItemKind, Kind, Receiver, Wishes


@dataclass(frozen=True)
class Quiet:
    """Quiet hours from `begins` until `ends`, by the clock of `zone`; over midnight where `ends` is the earlier one."""

    begins: time
    ends: time
    zone: ZoneInfo

    def covers(self, at: datetime) -> bool:
        clock = at.astimezone(self.zone).time()
        if self.begins < self.ends:
            return self.begins <= clock < self.ends
        return clock >= self.begins or clock < self.ends

    def __str__(self) -> str:
        return f"{self.begins:%H:%M} to {self.ends:%H:%M}"


def wishes_of(receiver: Receiver) -> Wishes | None:
    """None: of a group or the installation, or of a person who never said."""
    return getattr(receiver.person, "notice_wishes", None) if receiver.person else None


def zone_of(receiver: Receiver) -> ZoneInfo:
    wishes = wishes_of(receiver)
    return ZoneInfo((wishes.time_zone if wishes else "") or settings.TIME_ZONE)


def quiet_hours(receiver: Receiver) -> Quiet | None:
    wishes = wishes_of(receiver)
    if wishes is None or wishes.quiet_from is None or wishes.quiet_until is None:
        return None
    return Quiet(wishes.quiet_from, wishes.quiet_until, zone_of(receiver))


SMTP = "django.core.mail.backends.smtp.EmailBackend"


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
        """Return the receivers for a call that waits."""
        groups = _groups(call)
        return [each for each in self.receivers if self._may(each, call, groups) and _wants(each, call)]

    def _may(self, receiver: Receiver, call: ToolCall, groups: set[int | None]) -> bool:
        if receiver.person_id is not None:
            return receiver.person_id in self._deciders(call)
        return receiver.group_id is None or receiver.group_id in groups

    def _deciders(self, call: ToolCall) -> set[int]:
        """Looked up once for all calls that the same rules are about."""
        rules = (call.decided_by, call.decider_group, call.not_the_requester, call.escalates_to)
        key = (*rules, _has_escalated(call), call.caller_id)
        if key not in self._people:
            found = deciders.people(call, by=Now())
            own = {each.person_id for each in self.receivers if each.person_id is not None}
            self._people[key] = set(found.filter(pk__in=own).values_list("pk", flat=True))
        return self._people[key]


def _groups(call: ToolCall) -> set[int | None]:
    first = {call.decider_group} if call.decided_by == DecidedBy.GROUP else set()
    return first | ({call.escalates_to} if _has_escalated(call) else set())


def _has_escalated(call: ToolCall) -> bool:
    return call.escalates_at is not None and call.escalates_at <= timezone.now()


def _wants(receiver: Receiver, call: ToolCall) -> bool:
    wishes = wishes_of(receiver)
    checks: tuple[Callable[[], bool], ...] = (
        lambda: call.risk_level >= receiver.least_risk,
        lambda: wishes is None or call.risk_level >= wishes.least_risk,
        lambda: wishes is None or not wishes.tools or call.tool_name in wishes.tools,
    )
    return all(check() for check in checks)


LATE_COMMIT = timedelta(minutes=2)
NOTED_EVERY = timedelta(minutes=1)
# Others use the same thread to reach the database: no batch keeps them waiting for long.
AT_ONCE = 100
ASKED = "call.waiting"
OUTCOMES = {f"call.{each.value}" for each in (Status.APPROVED, Status.DECLINED, Status.EXPIRED, Status.WITHDRAWN)}


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
        since = _since(row, self._audience)
        if not (_events(since, self._after).exists() or _escalated(since, self._begun).exists()):
            self._note_silence(row)
            return False
        with transaction.atomic():
            locked = Installation.objects.select_for_update(skip_locked=True).filter(pk=1).first()
            return locked is not None and self._take_in(_since(locked, self._audience))

    def _note_silence(self, row: Installation) -> None:
        """Note how far it read, so that what is read again stays short where nobody is asked about most of it."""
        if row.looked_at is None or row.looked_at < self._begun - NOTED_EVERY:
            Installation.objects.filter(pk=row.pk, looked_at=row.looked_at).update(looked_at=self._begun)

    def _take_in(self, since: datetime) -> bool:
        events = list(_events(since, self._after)[:AT_ONCE])
        calls = list(_escalated(since, self._begun)[:AT_ONCE])
        _asked([each for each in events if each.name == ASKED], self._audience)
        _decided([each for each in events if each.name != ASKED])
        _let_others_in(calls, self._audience)
        Heard.objects.bulk_create([Heard(event_id=each.pk) for each in events])
        Heard.objects.bulk_create([Heard(call_id=each.pk, round=each.round) for each in calls])
        if AT_ONCE in (len(events), len(calls)):
            self._after = events[-1] if events else self._after
            return True
        Heard.objects.filter(at__lt=since - LATE_COMMIT).delete()
        Installation.objects.filter(pk=1).update(looked_at=self._begun)
        return False


def _since(row: Installation, audience: Audience) -> datetime:
    first = min(each.since for each in audience.receivers)
    return max(row.looked_at or first, first) - LATE_COMMIT


def _events(since: datetime, after: AuditEvent | None) -> QuerySet[AuditEvent]:
    heard = Heard.objects.filter(event_id=OuterRef("pk"))
    begin = Q(at__gt=since) if after is None else Q(at__gte=after.at) & (Q(at__gt=after.at) | Q(pk__gt=after.pk))
    rows: QuerySet[AuditEvent] = AuditEvent.objects.filter(begin, name__in=[ASKED, *OUTCOMES])
    return rows.filter(~Exists(heard)).defer("data").order_by("at", "pk")


def _escalated(since: datetime, now: datetime) -> QuerySet[ToolCall]:
    """Waiting calls that a second group may decide by now, and could not then."""
    heard = Heard.objects.filter(call_id=OuterRef("pk"), round=OuterRef("round"))
    rows = ToolCall.objects.filter(escalates_to__isnull=False, status=Status.WAITING)
    return rows.filter(~Exists(heard), escalates_at__gt=since, escalates_at__lte=now).order_by("escalates_at", "pk")


def _asked(events: list[AuditEvent], audience: Audience) -> None:
    times = {each.call_id: each.at for each in events}
    waiting = _waiting(each for each in times if each is not None)
    items = [
        _item(to, each, times[each.call_id])
        for each in waiting
        for to in audience.of(each.call)
        if times[each.call_id] >= to.since
    ]
    Item.objects.bulk_create(items)


def _let_others_in(calls: list[ToolCall], audience: Audience) -> None:
    """Whoever heard of it in this round already does not again."""
    approvals = _waiting(each.pk for each in calls)
    told = set(Item.objects.filter(approval__in=approvals).values_list("receiver_id", "approval_id", "round"))
    items = [
        _item(to, each, each.call.escalates_at)
        for each in approvals
        for to in audience.of(each.call)
        if (to.pk, each.pk, each.call.round) not in told
    ]
    Item.objects.bulk_create(items)


def _decided(events: list[AuditEvent]) -> None:
    """Note the end for those who were told that it waits. Others will read how things are then."""
    by_call = {each.call_id: each for each in events}
    told = Item.objects.filter(
        approval__call__in=by_call,
        kind=ItemKind.WAITING,
        notice__isnull=False,
        receiver__enabled=True,
        receiver__tells_decided=True,
    ).select_related("approval")
    items = {}
    for each in told:
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


def _item(to: Receiver, approval: Approval, at: datetime | None) -> Item:
    when = at or timezone.now()
    return Item(receiver=to, approval=approval, round=approval.call.round, kind=ItemKind.WAITING, at=when)


def _waiting(call_ids: Iterable[object]) -> list[Approval]:
    rows = Approval.objects.filter(call__in=list(call_ids), call__status=Status.WAITING).select_related("call")
    return list(rows.defer("disclosure", "call__arguments", "call__result", "call__output"))
