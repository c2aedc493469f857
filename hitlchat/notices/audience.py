"""Who is to hear that a call waits, as far as they want to, and not in their quiet hours."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models.functions import Now
from django.utils import timezone

from hitlchat.gate import deciders
from hitlchat.gate.models import DecidedBy, ToolCall
from hitlchat.notices.models import Kind, Receiver, Wishes


@dataclass(frozen=True)
class Quiet:
    """From `begins` until `ends`, by the clock of `zone`; over midnight where `ends` is the earlier one."""

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
        """For a call that waits."""
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
