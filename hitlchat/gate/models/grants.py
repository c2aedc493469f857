"""A bounded standing yes."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from hitlchat.gate.models.approvals import Approval
from hitlchat.gate.models.calls import CallerKind
from hitlchat.gate.models.ids import new_id
from hitlchat.gate.models.tools import Tool

MOST_CALLS = 100


class End(models.TextChoices):
    """How a grant was ended before it was used up or its time was over."""

    REVOKED = "revoked", "Revoked"
    VOIDED = "voided", "Void"


class Grant(models.Model):
    """What a person allowed to run without asking, together with their yes to one call. Only `used` and how it ended
    are ever written again; `seal` is over all the rest (grants/standing.py)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="grants")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="grants")
    tool = models.ForeignKey(Tool, null=True, on_delete=models.SET_NULL, related_name="grants")
    tool_name = models.CharField(max_length=64)
    source = models.CharField(max_length=32)
    definition_hash = models.CharField(max_length=64)
    risk_level = models.PositiveSmallIntegerField()
    rule = models.CharField(max_length=64, help_text="The rules under which it was given.")
    caller_kind = models.CharField(max_length=8, choices=CallerKind.choices)
    token_id = models.BigIntegerField(null=True, help_text="Of an MCP client: only calls with this token are covered.")
    arguments_digest = models.CharField(max_length=64, blank=True, help_text="Empty: whatever the arguments.")
    conversation_id = models.UUIDField(null=True, help_text="Null: in any conversation.")
    calls = models.PositiveSmallIntegerField(null=True, help_text="How many calls; null: any number.")
    until = models.DateTimeField(null=True)
    condition = models.CharField(max_length=500, blank=True)
    given_at = models.DateTimeField(default=timezone.now)
    seal = models.CharField(max_length=64)
    used = models.PositiveSmallIntegerField(default=0)
    end = models.CharField(max_length=8, choices=End.choices, blank=True)
    why = models.CharField(max_length=300, blank=True, help_text="Why it was ended, to go on a sentence.")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["given_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(calls__isnull=False) | Q(until__isnull=False) | Q(conversation_id__isnull=False),
                name="grant_is_bounded",
            ),
            models.CheckConstraint(
                condition=Q(calls=None) | Q(calls__gte=1, calls__lte=MOST_CALLS, used__lte=F("calls")),
                name="grant_is_not_overdrawn",
            ),
            models.CheckConstraint(condition=Q(end__in=["", *End.values]), name="grant_end_known"),
        ]
        indexes = [
            # What covers a call that comes in; and the meter and the page of one person.
            models.Index(fields=["person", "tool"], condition=Q(end=""), name="grant_standing"),
        ]

    def __str__(self) -> str:
        return f"grant {self.id} for {self.tool_name}"

    @property
    def left(self) -> int | None:
        """How many more calls; None: any number."""
        return None if self.calls is None else self.calls - self.used
