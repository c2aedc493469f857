"""A call of a tool, with its status."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hitlchat.gate.canonical import JSONTextField
from hitlchat.gate.models.ids import new_id
from hitlchat.gate.models.oversight import DecidedBy
from hitlchat.gate.models.tools import Tool
from hitlchat.gate.status import SETTLED, Status


class CallerKind(models.TextChoices):
    CHAT = "chat", "the assistant"
    STUDIO = "studio", "a test in the Tool Studio"
    API = "api", "an API client"
    MCP = "mcp", "an MCP client"


class ToolCall(models.Model):
    """One request to run one tool. `status` is written by transition.py alone."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tool = models.ForeignKey(Tool, null=True, on_delete=models.SET_NULL, related_name="calls")
    tool_name = models.CharField(max_length=64)
    source = models.CharField(max_length=32, blank=True)
    definition_hash = models.CharField(max_length=64, blank=True)
    risk_level = models.PositiveSmallIntegerField(default=5)
    arguments = JSONTextField(default=dict)
    status = models.CharField(max_length=16, choices=Status.choices)
    round = models.PositiveSmallIntegerField(
        default=1, help_text="How often it was asked about. A move counts only in the round it was decided in."
    )
    caller_kind = models.CharField(max_length=8, choices=CallerKind.choices)
    caller = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="tool_calls")
    # Opaque to the gate: who asked needs them to find its own rows again.
    conversation_id = models.UUIDField(null=True)
    turn_id = models.UUIDField(null=True)
    position = models.PositiveSmallIntegerField(default=0)
    model_call_id = models.CharField(max_length=200, blank=True)
    rule = models.CharField(max_length=64, blank=True, help_text="The rule under which the verdict was given.")
    reason = models.TextField(blank=True, help_text="The verdict's reason: why it was asked, not asked, or refused.")
    grantable = models.BooleanField(
        default=False, help_text="Whether the tool alone asked, so that a grant may cover the likes of it."
    )
    grant = models.ForeignKey(
        "gate.Grant", null=True, on_delete=models.PROTECT, related_name="covered", help_text="What it runs on unasked."
    )
    # Opaque too: with which token an MCP client asked.
    token_id = models.BigIntegerField(null=True)
    result = JSONTextField(null=True)
    error = JSONTextField(null=True)
    output = models.TextField(blank=True)
    deadline = models.DateTimeField(null=True, help_text="Until when a waiting call may be answered.")
    # Who decides, as it was when this was asked (oversight.py). Here, since a decision is judged by this row alone;
    # groups by their number, so that one that is deleted leaves its place.
    decided_by = models.CharField(max_length=16, choices=DecidedBy.choices, default=DecidedBy.REQUESTER)
    decider_group = models.PositiveIntegerField(null=True)
    quorum = models.PositiveSmallIntegerField(default=1)
    not_the_requester = models.BooleanField(default=False)
    escalates_to = models.PositiveIntegerField(null=True)
    escalates_at = models.DateTimeField(null=True)
    oversight_digest = models.CharField(max_length=64, blank=True, help_text="Empty: the tool had no rules of its own.")
    owner = models.CharField(max_length=36, blank=True)
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="call_status_known"),
            # Expiry is decided by comparing with it; without one a question would never close.
            models.CheckConstraint(
                condition=~Q(status=Status.WAITING) | Q(deadline__isnull=False), name="waiting_call_has_deadline"
            ),
        ]
        indexes = [
            # A turn asks for its calls in the model's order.
            models.Index(fields=["turn_id", "position"], name="call_by_turn"),
            models.Index(fields=["conversation_id", "created_at"], name="call_by_conversation"),
            models.Index(fields=["caller", "created_at"], name="call_by_caller"),
            # The sweeper: what is open and has not been touched for a while.
            models.Index(
                fields=["status", "lease_until"],
                condition=Q(status__in=[Status.ALLOWED, Status.APPROVED, Status.EXECUTING]),
                name="call_unfinished",
            ),
            # Has a test of this definition passed? Lets its tool be published.
            models.Index(
                fields=["tool", "definition_hash"],
                condition=Q(caller_kind=CallerKind.STUDIO, status=Status.SUCCEEDED),
                name="call_passed_test",
            ),
            # Healing runs whose call was settled by a process without a server loop.
            models.Index(fields=["settled_at"], name="call_by_settled_at"),
            # For insights: all that is counted of calls that are over. Written once, when a call settles.
            models.Index(
                fields=["created_at", "deadline", "status", "tool_name", "risk_level", "settled_at"],
                condition=Q(settled_at__isnull=False),
                name="call_over_by_time",
            ),
            # What waits for one person, the soonest deadline first, by each of the ways to decide (queue.py).
            models.Index(fields=["caller", "deadline"], condition=Q(status=Status.WAITING), name="call_waiting"),
            models.Index(
                fields=["decided_by", "decider_group", "deadline"],
                condition=Q(status=Status.WAITING) & ~Q(decided_by=DecidedBy.REQUESTER),
                name="call_by_deciders_waiting",
            ),
            models.Index(
                fields=["escalates_to", "deadline"],
                condition=Q(status=Status.WAITING, escalates_to__isnull=False),
                name="call_by_second_group_waiting",
            ),
            models.Index(fields=["deadline"], condition=Q(status=Status.WAITING), name="call_overdue"),
            # What others may decide after some time.
            models.Index(
                fields=["escalates_to", "status"], condition=Q(escalates_to__isnull=False), name="call_by_second_group"
            ),
            # The history, the newest first: of all, where what few calls differ in is read in the index itself; of one
            # outcome; of one tool; of what ran unasked; of what others than the requester may decide.
            models.Index(
                fields=["created_at", "id", "risk_level", "caller_kind", "source", "rule"], name="call_by_time"
            ),
            # Without what is open, which has indexes of its own that this one must not come before.
            models.Index(
                fields=["status", "created_at", "id"],
                condition=Q(settled_at__isnull=False),
                name="call_by_outcome",
            ),
            models.Index(fields=["tool_name", "created_at", "id"], name="call_by_tool"),
            models.Index(fields=["created_at", "id"], condition=Q(deadline__isnull=True), name="call_unasked"),
            models.Index(
                fields=["decided_by", "decider_group", "created_at"],
                condition=~Q(decided_by=DecidedBy.REQUESTER),
                name="call_decided_by_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name} {self.id}"

    @property
    def settled(self) -> bool:
        return self.status in SETTLED

    @property
    def duration_ms(self) -> float | None:
        if self.started_at is None or self.settled_at is None:
            return None
        return (self.settled_at - self.started_at).total_seconds() * 1000


class Attachment(models.Model):
    """The bytes of one content block of what a call gave; `digest` is their SHA-256, by which the result names them."""

    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="attachments")
    digest = models.CharField(max_length=64)
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["call", "digest"], name="attachment_once_for_a_call")]

    def __str__(self) -> str:
        return self.digest
