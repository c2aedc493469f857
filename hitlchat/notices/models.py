"""Rows of notices: who hears of what, what is to be told, what is on its way; so no crash loses one."""

from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hitlchat.base.canonical import JSONTextField
from hitlchat.base.rows import Row
from hitlchat.gate.models import Approval, new_id
from hitlchat.secrets.sealing import unseal

# The purposes of what is sealed.
URL = "notice url"
KEY = "notice key"


class Wishes(Row):
    """One person's wishes, for their e-mail and their own webhooks. Without a row: everything, at any time."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="notice_wishes"
    )
    least_risk = models.PositiveSmallIntegerField(default=0)
    tools = JSONTextField(default=list, help_text="Names of tools; none means all.")
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)
    time_zone = models.CharField(max_length=64, blank=True)
    # An address counts once the code that was sent there came back.
    pending = models.CharField(max_length=254, blank=True, help_text="An address that is not confirmed yet.")
    code_sent_at = models.DateTimeField(null=True)


class Installation(Row):
    """One row: whether notices carry arguments, and up to when the record was looked through for what to tell."""

    arguments = models.BooleanField(default=False)
    looked_at = models.DateTimeField(null=True)

    @classmethod
    def row(cls) -> "Installation":
        return cls.objects.get_or_create(pk=1)[0]


class Kind(models.TextChoices):
    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"
    SLACK = "slack", "Slack"


class Receiver(Row):
    """One address that hears: of a person, of a group, or (neither) of the installation. What is secret is sealed."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="notice_receivers"
    )
    group = models.ForeignKey(Group, null=True, on_delete=models.CASCADE, related_name="notice_receivers")
    name = models.CharField(max_length=60)
    # Of a webhook's address no more than this is ever shown: the rest may be its password.
    place = models.CharField(max_length=260, help_text="The confirmed e-mail address, or a webhook's host.")
    url = models.TextField(blank=True, help_text="Sealed.")
    secret = models.TextField(blank=True, help_text="Sealed: what webhooks are signed with.")
    former_secret = models.TextField(blank=True, help_text="Sealed: the one before, until `former_until`.")
    former_until = models.DateTimeField(null=True)
    allow_private = models.BooleanField(default=False, help_text="Said by an administrator, for this one.")
    tells_decided = models.BooleanField(default=True, help_text="Whether it hears what became of it, too.")
    least_risk = models.PositiveSmallIntegerField(default=0)
    enabled = models.BooleanField(default=True)
    off_why = models.CharField(max_length=200, blank=True)
    since = models.DateTimeField(default=timezone.now, help_text="What was asked before is none of its business.")
    made_at = models.DateTimeField(default=timezone.now)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["made_at", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="receiver_kind_known"),
            models.CheckConstraint(condition=Q(person=None) | Q(group=None), name="receiver_of_one"),
            models.CheckConstraint(condition=~Q(kind=Kind.EMAIL) | Q(person__isnull=False), name="mail_is_personal"),
            models.UniqueConstraint(fields=["person"], condition=Q(kind=Kind.EMAIL), name="one_mail_per_person"),
        ]

    @property
    def is_mail(self) -> bool:
        return self.kind == Kind.EMAIL

    @property
    def whom(self) -> str:
        if self.person is not None:
            return self.person.get_username()
        return f"the group {self.group.name}" if self.group else "the installation"

    @property
    def former_key_counts(self) -> bool:
        """Return whether receivers may still check with the key before the present one."""
        return self.former_until is not None and self.former_until > timezone.now()

    @property
    def wishes(self) -> Wishes | None:
        """Return the wishes of its person; None: of a group or the installation, or of who never said."""
        return getattr(self.person, "notice_wishes", None)

    @property
    def zone(self) -> ZoneInfo:
        wishes = self.wishes
        return ZoneInfo((wishes.time_zone if wishes else "") or settings.TIME_ZONE)

    def quiet_hours(self, at: datetime) -> str:
        """Return the quiet hours that cover this time, in words; empty if none do."""
        wishes = self.wishes
        if wishes is None or wishes.quiet_from is None or wishes.quiet_until is None:
            return ""
        begins, ends, clock = wishes.quiet_from, wishes.quiet_until, at.astimezone(self.zone).time()
        # They last over midnight where their end is the earlier one.
        covers = begins <= clock < ends if begins < ends else clock >= begins or clock < ends
        return f"{begins:%H:%M} to {ends:%H:%M}" if covers else ""


class Heard(Row):
    """Something in the record that was turned into items: an audit event, or that others may decide a call by now."""

    event_id = models.BigIntegerField(null=True, unique=True)
    call_id = models.UUIDField(null=True)
    round = models.PositiveSmallIntegerField(null=True)
    at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["call_id", "round"], name="escalation_heard_once")]


class NoticeKind(models.TextChoices):
    WAITING = "waiting", "Waits for an answer"
    DECIDED = "decided", "Has its outcome"
    TEST = "test", "Test"


class State(models.TextChoices):
    DUE = "due", "On its way"
    SENT = "sent", "Delivered"
    GIVEN_UP = "given_up", "Given up"
    DROPPED = "dropped", "Not sent"


class Notice(Row):
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

    @property
    def message_id(self) -> str:
        """Return how receivers know it: the same however often it is sent."""
        return f"msg_{self.id.hex}"


class ItemKind(models.TextChoices):
    WAITING = "waiting", "Waits"
    DECIDED = "decided", "Has its outcome"


class Item(Row):
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


def keys_of(receiver: Receiver) -> tuple[str, ...]:
    """Return the present key, and the former one while receivers may still check with it. Raises: Unsealable"""
    sealed = (receiver.secret, receiver.former_secret) if receiver.former_key_counts else (receiver.secret,)
    return tuple(unseal(each, KEY) for each in sealed)
