"""Quiet hours: while they last nothing is sent to a person; what came in is told when they are over."""

from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

from django.conf import settings

from hitlchat.notices.models import Receiver, Wishes


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
