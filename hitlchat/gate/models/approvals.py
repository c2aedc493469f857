"""The question about a call, and what people answered."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hitlchat.gate.canonical import JSONTextField
from hitlchat.gate.models.calls import ToolCall
from hitlchat.gate.models.ids import new_id


class Approval(models.Model):
    """The open question about one call. Its outcome is the call's status: there is no second place to keep it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    call = models.OneToOneField(ToolCall, on_delete=models.PROTECT, related_name="approval")
    prompt = models.TextField()
    disclosure = JSONTextField(help_text="What the card is built from, frozen when the question was asked last.")
    digest = models.CharField(max_length=64)
    same = models.CharField(max_length=64, blank=True, help_text="Equal for identical calls, which are joined.")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return f"approval {self.id}"


class Verdict(models.TextChoices):
    APPROVE = "approve", "Approve"
    DECLINE = "decline", "Decline"


class Decision(models.Model):
    """One person's answer, and how they were known; that they gave it may also be no more than a client's word."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="decisions")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="decisions")
    round = models.PositiveSmallIntegerField(default=1, help_text="Which of the call's rounds it answers.")
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    means = models.CharField(max_length=16, help_text="How the person was known, as an Actor has it.")
    client = models.CharField(max_length=100, blank=True, help_text="What the MCP client called itself: a claim.")
    token_name = models.CharField(max_length=80, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    edited_arguments = JSONTextField(null=True)
    digest = models.CharField(max_length=64, help_text="What was consented to.")
    first_shown_at = models.DateTimeField(null=True, help_text="When this person first had the card before them.")
    opened = models.BooleanField(null=True, help_text="Whether folded text was opened; null: nothing was folded.")
    hurried = models.BooleanField(default=False, help_text="Answered faster than the card can plausibly be read.")
    decided_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["round", "decided_at"]
        constraints = [
            models.UniqueConstraint(fields=["approval", "person", "round"], name="one_decision_per_person_and_round"),
            models.CheckConstraint(condition=Q(verdict__in=Verdict.values), name="decision_verdict_known"),
        ]
        # None of what they are over changes. For insights: what is counted of decisions, and the few that are read.
        indexes = [
            models.Index(
                fields=["decided_at", "person", "verdict", "hurried", "first_shown_at"], name="decision_by_time"
            ),
            models.Index(fields=["decided_at"], condition=Q(hurried=True), name="decision_hurried"),
            models.Index(
                fields=["decided_at"], condition=Q(edited_arguments__isnull=False), name="decision_with_edits"
            ),
            # The history, by who decided; and what was answered faster than it can be read, which is little.
            models.Index(fields=["person", "approval"], name="decision_by_person"),
            models.Index(fields=["approval"], condition=Q(hurried=True), name="decision_hurried_approval"),
            models.Index(fields=["means", "approval"], name="decision_by_means"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} of {self.approval_id}"
