"""The record of what happened."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from hitlchat.gate.append_only import AppendOnly
from hitlchat.gate.canonical import JSONTextField
from hitlchat.gate.models.calls import ToolCall


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
