"""That somebody had a question before them."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from hitlchat.gate.models.approvals import Approval


class Showing(models.Model):
    """When a person first had the card of this round before them, and how: a person at a page, a program of theirs, or
    an MCP client that was to show it. It is told in the record too, as `call.shown`."""

    id = models.BigAutoField(primary_key=True)
    approval = models.ForeignKey(Approval, on_delete=models.CASCADE, related_name="showings")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    round = models.PositiveSmallIntegerField()
    means = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, help_text="Of what was shown.")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["approval", "person", "round"], name="shown_first_once_per_round"),
        ]

    def __str__(self) -> str:
        return f"{self.approval_id} shown {self.at:%Y-%m-%d %H:%M:%S}"
