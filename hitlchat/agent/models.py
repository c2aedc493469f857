"""Conversations, and the runs that work on them. All state of the agent loop is in these rows."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hitlchat.base.canonical import JSONTextField
from hitlchat.gate.models import new_id


class RunStatus(models.TextChoices):
    RUNNING = "running", "Working"
    WAITING = "waiting", "Waiting for an answer"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    STOPPED = "stopped", "Stopped"


LONGEST_MESSAGE = 100_000
ACTIVE = (RunStatus.RUNNING, RunStatus.WAITING)


class Conversation(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="conversations")
    title = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, blank=True)
    tools = JSONTextField(null=True, help_text="Names of the tools it may use; null means all published ones.")
    instructions = models.TextField(blank=True, default="", help_text="What the model is told in it beforehand.")
    share = models.UUIDField(null=True, unique=True, help_text="In the link by which colleagues may read it.")
    pinned_at = models.DateTimeField(null=True)
    archived_at = models.DateTimeField(null=True)
    tip = models.ForeignKey(
        "Run", null=True, on_delete=models.SET_NULL, related_name="+", help_text="The last run of the shown branch."
    )
    deleted_at = models.DateTimeField(null=True, help_text="It can be brought back for a moment, and then is gone.")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-updated_at"]
        indexes = [
            models.Index(fields=["owner", "-updated_at"], name="conversation_by_owner"),
            models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="conversation_deleted"),
        ]

    def __str__(self) -> str:
        return self.title or "New conversation"


class Run(models.Model):
    """All work from one user message to the final answer. `status` is written by runs.py alone."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="runs")
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="children", help_text="The run before it."
    )
    shown = models.BooleanField(default=True, help_text="It is on the branch that people see and the model reads.")
    status = models.CharField(max_length=8, choices=RunStatus.choices, default=RunStatus.RUNNING)
    error = models.TextField(blank=True)
    # The assistant message whose calls are not all answered yet.
    turn_id = models.UUIDField(null=True)
    turns = models.PositiveSmallIntegerField(default=0)
    # Parked: nothing to do until a call settles; no process works on it and none holds its lease.
    parked = models.BooleanField(default=False)
    owner = models.CharField(max_length=36, blank=True)
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(fields=["conversation"], condition=Q(status__in=ACTIVE), name="one_active_run"),
            models.CheckConstraint(condition=Q(status__in=RunStatus.values), name="run_status_known"),
        ]
        indexes = [
            models.Index(fields=["lease_until"], condition=Q(status__in=ACTIVE), name="run_active"),
            models.Index(fields=["turn_id"], condition=Q(turn_id__isnull=False), name="run_by_turn"),
        ]

    def __str__(self) -> str:
        return f"run {self.id}"


class Role(models.TextChoices):
    USER = "user", "You"
    ASSISTANT = "assistant", "Assistant"
    TOOL = "tool", "Tool"
    NOTICE = "notice", "hitlchat"


class MessageState(models.TextChoices):
    STREAMING = "streaming", "Being written"
    COMPLETE = "complete", "Complete"
    CUT = "cut", "Cut off"


class MessageQuerySet(models.QuerySet["Message"]):
    def shown(self) -> "MessageQuerySet":
        """Return those of the branch that people see and the model reads."""
        return self.filter(Q(run=None) | Q(run__shown=True))


class Message(models.Model):
    """One message. An assistant message and its calls are a turn; the message's id is the calls' turn_id."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="messages")
    run = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="messages")
    seq = models.PositiveIntegerField()
    role = models.CharField(max_length=10, choices=Role.choices)
    content = models.TextField(blank=True)
    # What the model thought before it answered, where its server says so.
    reasoning = models.TextField(blank=True, default="")
    # As sent to the model, already serialised: a turn's cost must not grow with re-encoding what came before.
    wire = models.TextField(blank=True)
    # The same with what the model's server added, for that endpoint alone; empty if it added nothing.
    echo = models.TextField(blank=True, default="")
    echo_to = models.TextField(blank=True, default="")
    state = models.CharField(max_length=10, choices=MessageState.choices, default=MessageState.COMPLETE)
    created_at = models.DateTimeField(default=timezone.now)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["conversation", "seq"], name="message_order")]

    def __str__(self) -> str:
        return f"{self.role} {self.seq}"


class QueuedMessage(models.Model):
    """A message that was said while a run goes on; queued.py sends it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="queued")
    content = models.TextField()

    class Meta:
        # Their ids grow with time.
        ordering = ["id"]

    def __str__(self) -> str:
        return self.content[:80]


class SentMessage(models.Model):
    """A message that a program sent with an Idempotency-Key; `digest` is of its conversation and content."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+")
    made_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "key"], name="one_message_for_a_key")]

    def __str__(self) -> str:
        return self.key


class SearchText(models.Model):
    """The words of a message, or of a title (`message` is null), as the search reads them; search.py writes them."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    message = models.OneToOneField(Message, null=True, on_delete=models.CASCADE, related_name="+")
    words = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"], condition=Q(message__isnull=True), name="one_title_to_search"
            ),
        ]

    def __str__(self) -> str:
        return self.words[:80]
