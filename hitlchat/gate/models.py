"""What the gate keeps: tools, calls, approvals, decisions and the record of all of it."""

from uuid import UUID

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from hitlchat.gate.append_only import AppendOnly
from hitlchat.gate.canonical import JSONTextField
from hitlchat.gate.status import SETTLED, Status

NAME_PATTERN = r"[A-Za-z0-9_-]{1,64}"
TOOL_NAME = RegexValidator(
    rf"\A{NAME_PATTERN}\Z", "Use 1 to 64 letters (a to z), digits, underscores and hyphens.", "name"
)
DEFAULT_PROMPT = "Run '{toolName}' with arguments {args}?"


def new_id() -> UUID:
    return uuid7()


class HitlMode(models.TextChoices):
    REQUIRED = "REQUIRED", "Ask every time"
    CONDITIONAL = "CONDITIONAL", "Policies decide"
    DISABLED = "DISABLED", "Never ask"


class CallerKind(models.TextChoices):
    CHAT = "chat", "the assistant"
    STUDIO = "studio", "a test in the Tool Studio"
    API = "api", "an API client"
    MCP = "mcp", "an MCP client"


class Tool(models.Model):
    """A named, described function with an argument schema that a model may call; one row whatever its source."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=64, unique=True, validators=[TOOL_NAME])
    title = models.CharField(max_length=120, blank=True)
    description = models.TextField(blank=True)
    input_schema = JSONTextField(default=dict)
    output_schema = JSONTextField(null=True, blank=True)
    source = models.CharField(max_length=32)
    origin = models.CharField(max_length=200, help_text="Where the tool comes from, in words, for the approval card.")
    hitl_mode = models.CharField(max_length=16, choices=HitlMode.choices, default=HitlMode.REQUIRED)
    prompt_template = models.CharField(max_length=500, blank=True)
    condition = models.TextField(blank=True, max_length=2000)
    deadline_seconds = models.PositiveIntegerField(null=True, blank=True)
    signed_in_only = models.BooleanField(default=False, help_text="The word of an MCP client is not enough for it.")
    risk_level = models.PositiveSmallIntegerField(default=5)
    facts = JSONTextField(default=list, help_text="What the tool can reach, one plain sentence each.")
    published = models.BooleanField(default=False)
    definition_hash = models.CharField(max_length=64)
    example = JSONTextField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(hitl_mode__in=HitlMode.values), name="tool_hitl_mode_known"),
            models.CheckConstraint(condition=Q(risk_level__lte=5), name="tool_risk_level_0_to_5"),
        ]

    def __str__(self) -> str:
        return self.name


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
    result = JSONTextField(null=True)
    error = JSONTextField(null=True)
    output = models.TextField(blank=True)
    deadline = models.DateTimeField(null=True, help_text="Until when a waiting call may be answered.")
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
            models.Index(fields=["caller", "created_at"], condition=Q(status=Status.WAITING), name="call_waiting"),
            models.Index(fields=["deadline"], condition=Q(status=Status.WAITING), name="call_overdue"),
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


class Approval(models.Model):
    """The open question about one call. Its outcome is the call's status: there is no second place to keep it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    call = models.OneToOneField(ToolCall, on_delete=models.PROTECT, related_name="approval")
    prompt = models.TextField()
    disclosure = JSONTextField(help_text="What the card is built from, frozen when the question was asked last.")
    digest = models.CharField(max_length=64)
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
    decided_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["round", "decided_at"]
        constraints = [
            models.UniqueConstraint(fields=["approval", "person", "round"], name="one_decision_per_person_and_round"),
            models.CheckConstraint(condition=Q(verdict__in=Verdict.values), name="decision_verdict_known"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} of {self.approval_id}"


class AuditEvent(AppendOnly):
    """Something that happened, in the past tense, with what was shown and why."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=40)
    call = models.ForeignKey(ToolCall, null=True, on_delete=models.PROTECT, related_name="events")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    means = models.CharField(max_length=16)
    data = JSONTextField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["at"], name="audit_by_time")]

    def __str__(self) -> str:
        return f"{self.name} {self.at:%Y-%m-%d %H:%M:%S}"
