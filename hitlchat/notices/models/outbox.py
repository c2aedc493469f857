"""What is to be told, and what is on its way: rows, so that no crash loses a notice."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hitlchat.gate.models import Approval, new_id
from hitlchat.notices.models.receivers import Receiver


class Heard(models.Model):
    """Something in the record that was turned into items: an audit event, or that others may decide a call by now."""

    event_id = models.BigIntegerField(null=True, unique=True)
    call_id = models.UUIDField(null=True)
    round = models.PositiveSmallIntegerField(null=True)
    at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["call_id", "round"], name="escalation_heard_once")]

    def __str__(self) -> str:
        return f"heard {self.event_id or self.call_id}"


class NoticeKind(models.TextChoices):
    WAITING = "waiting", "Waits for an answer"
    DECIDED = "decided", "Has its outcome"
    TEST = "test", "Test"


class State(models.TextChoices):
    DUE = "due", "On its way"
    SENT = "sent", "Delivered"
    GIVEN_UP = "given_up", "Given up"
    DROPPED = "dropped", "Not sent"


class Notice(models.Model):
    """One message to one receiver, as it is sent and sent again: its id and body stay the same."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    receiver = models.ForeignKey(Receiver, on_delete=models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=8, choices=NoticeKind.choices)
    subject = models.CharField(max_length=200)
    body = models.TextField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.DUE)
    made_at = models.DateTimeField(default=timezone.now)
    next_try_at = models.DateTimeField(default=timezone.now)
    tries = models.PositiveSmallIntegerField(default=0)
    owner = models.CharField(max_length=36, blank=True)
    lease_until = models.DateTimeField(null=True)
    tried_at = models.DateTimeField(null=True)
    took_ms = models.PositiveIntegerField(null=True)
    status = models.PositiveSmallIntegerField(null=True, help_text="Of the last HTTP answer.")
    trouble = models.CharField(max_length=300, blank=True, help_text="Of the last attempt, without anything secret.")
    answer = models.CharField(max_length=300, blank=True, help_text="How the answer to a test began.")
    done_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-made_at", "-id"]
        constraints = [models.CheckConstraint(condition=Q(state__in=State.values), name="notice_state_known")]
        indexes = [
            # What is to be sent now.
            models.Index(fields=["next_try_at"], condition=Q(state=State.DUE), name="notice_due"),
            models.Index(fields=["receiver", "-made_at"], name="notice_log"),
            models.Index(fields=["done_at"], condition=Q(done_at__isnull=False), name="notice_done"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} notice {self.id}"

    @property
    def message_id(self) -> str:
        """How receivers know it: the same however often it is sent."""
        return f"msg_{self.id.hex}"


class ItemKind(models.TextChoices):
    WAITING = "waiting", "Waits"
    DECIDED = "decided", "Has its outcome"


class Item(models.Model):
    """One thing that one receiver is to hear; `notice` is what it went into."""

    receiver = models.ForeignKey(Receiver, on_delete=models.CASCADE, related_name="items")
    approval = models.ForeignKey(Approval, on_delete=models.CASCADE, related_name="+")
    round = models.PositiveSmallIntegerField(default=1)
    kind = models.CharField(max_length=8, choices=ItemKind.choices)
    outcome = models.CharField(max_length=16, blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField(help_text="When it happened.")
    made_at = models.DateTimeField(default=timezone.now)
    notice = models.ForeignKey(Notice, null=True, on_delete=models.CASCADE, related_name="items")

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["receiver", "kind", "made_at"], condition=Q(notice=None), name="item_untold"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.approval_id} for {self.receiver_id}"
