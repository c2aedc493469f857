"""Where notices go."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hitlchat.gate.models import new_id


class Kind(models.TextChoices):
    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"
    SLACK = "slack", "Slack"


class Receiver(models.Model):
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

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def is_mail(self) -> bool:
        return self.kind == Kind.EMAIL
