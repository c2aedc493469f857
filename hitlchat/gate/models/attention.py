"""Attention checks: what was announced, who has read that, and the planted questions. None of them is a call."""

from typing import Final

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from hitlchat.base.canonical import JSONTextField
from hitlchat.base.rows import Row
from hitlchat.gate.models.ids import new_id

MOST_DAYS: Final = 90


class Announcement(Row):
    """What an administrator announced to everybody. Checks are on while the last one has not ended."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    text = models.TextField()
    every_days = models.PositiveSmallIntegerField(help_text="A person gets at most one check in so many days.")
    at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(every_days__gte=1, every_days__lte=MOST_DAYS), name="checks_at_most_daily"
            ),
        ]


class AnnouncementRead(Row):
    """A person has had the announcement before them, and said so."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    announcement = models.ForeignKey(Announcement, on_delete=models.PROTECT, related_name="read_by", db_index=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["announcement", "person"], name="announcement_read_once"),
        ]


class AttentionCheck(Row):
    """A question that must be answered with no, and that is no call: nothing here can run.

    It belongs to a reading of the announcement: without one there is none. `argument` is what was changed, from what
    the request says, `wanted`, to what the card shows, `planted`.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    reading = models.ForeignKey(AnnouncementRead, on_delete=models.PROTECT, related_name="checks", db_index=False)
    after = models.UUIDField(help_text="The check before it, else the reading: of two planted at once one is left.")
    nonce = models.CharField(max_length=64, help_text="So that nobody can guess the rest from its digest on record.")
    disclosure = JSONTextField(help_text="What its card is built from.")
    argument = models.TextField()
    wanted = models.TextField()
    planted = models.TextField()
    at = models.DateTimeField(default=timezone.now, db_index=True)
    until = models.DateTimeField()
    seen = models.BooleanField(null=True, help_text="Whether the answer was no; null: there is none.")
    answered_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["reading", "after"], name="one_check_after_another"),
            models.CheckConstraint(condition=Q(until__gt=F("at")), name="check_ends_after_its_beginning"),
            models.CheckConstraint(
                condition=Q(seen__isnull=True, answered_at__isnull=True)
                | Q(seen__isnull=False, answered_at__isnull=False),
                name="check_answered_at_a_time",
            ),
        ]

    @property
    def is_open(self) -> bool:
        return self.seen is None and self.until > timezone.now() and self.reading.announcement.ended_at is None
