"""What people want to hear of and when, and what holds for everyone."""

from django.conf import settings
from django.db import models

from hitlchat.base.canonical import JSONTextField


class Wishes(models.Model):
    """Of one person, for their e-mail and their own webhooks. Without a row: everything, at any time."""

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

    def __str__(self) -> str:
        return f"wishes of {self.person_id}"


class Installation(models.Model):
    """One row: whether notices carry arguments, and up to when the record was looked through for what to tell."""

    arguments = models.BooleanField(default=False)
    looked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return "notices of this installation"

    @classmethod
    def row(cls) -> "Installation":
        return cls.objects.get_or_create(pk=1)[0]
