"""What authored tools consist of beyond their row in the gate."""

from django.conf import settings
from django.db import models

from hitlchat.gate.canonical import JSONTextField
from hitlchat.gate.models import TOOL_NAME, Tool

GROUP = TOOL_NAME


class Script(models.Model):
    """An authored tool's code and the capabilities it was granted."""

    tool = models.OneToOneField(Tool, primary_key=True, on_delete=models.CASCADE, related_name="script")
    code = models.TextField()
    group = models.CharField(max_length=64, default="tools", validators=[GROUP])
    description = models.TextField(blank=True, help_text="Empty: the docstring of run().")
    capabilities = JSONTextField(default=dict)
    version = models.PositiveIntegerField(default=1)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    saved_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.tool_id} version {self.version}"


class StoreEntry(models.Model):
    """One value that tools of a group keep between calls."""

    group = models.CharField(max_length=64)
    key = models.CharField(max_length=200)
    value = JSONTextField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "key"], name="one_value_per_key")]

    def __str__(self) -> str:
        return f"{self.group}: {self.key}"


class Shipment(models.Model):
    """A tool of the library that was installed once, so that a deleted one does not come back."""

    name = models.CharField(max_length=64, primary_key=True)
    installed_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name
