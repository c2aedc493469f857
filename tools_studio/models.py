"""Rows of authored tools beyond the one in the gate."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from hitlchat.base.canonical import JSONTextField
from hitlchat.base.rows import Row
from hitlchat.gate.models import TOOL_NAME, Tool, ToolCall
from hitlchat.secrets.values import Stored


class Category(models.TextChoices):
    TEXT = "Text", "Text"
    DATA = "Data", "Data"
    DATE_TIME = "Date/Time", "Date/Time"
    MATH = "Math", "Math"
    ENCODING = "Encoding", "Encoding"
    CRYPTO = "Crypto", "Crypto"
    SECURITY = "Security", "Security"
    FILES = "Files", "Files"
    WEB = "Web", "Web"
    PRODUCTIVITY = "Productivity", "Productivity"
    MESSAGING = "Messaging", "Messaging"
    AI_APIS = "AI APIs", "AI APIs"
    CUSTOM = "Custom", "Custom"


class Script(Row):
    """An authored tool's code and the capabilities it was granted."""

    tool = models.OneToOneField(Tool, primary_key=True, on_delete=models.CASCADE, related_name="script")
    code = models.TextField()
    group = models.CharField(max_length=64, default="tools", validators=[TOOL_NAME])
    description = models.TextField(blank=True, help_text="Empty: the docstring of run().")
    category = models.CharField(max_length=16, choices=Category.choices, default=Category.CUSTOM)
    tags = JSONTextField(default=list)
    capabilities = JSONTextField(default=dict)
    version = models.PositiveIntegerField(default=1)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    saved_at = models.DateTimeField(auto_now=True)
    shipped = models.CharField(
        max_length=64, blank=True, help_text="The recorded hash of the library's tool that this is, unchanged."
    )
    revoked = models.TextField(blank=True, help_text="Why this tool must not run; empty when it may.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(category__in=Category.values), name="script_category_known"),
        ]


class StoredVariable(Row):
    """A static variable of a tool: a plain value, a sealed secret, or a reference to the environment."""

    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="variables")
    name = models.CharField(max_length=64)
    secret = models.BooleanField(default=False)
    value = models.TextField(blank=True)
    fingerprint = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["script", "name"], name="one_variable_per_name")]

    @property
    def stored(self) -> Stored:
        return Stored(self.name, self.value, self.secret, self.fingerprint)


class ScriptVersion(Row):
    """A tool as it was saved once. Secrets are not in it."""

    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    draft = JSONTextField(help_text="The tool as its export has it.")
    definition_hash = models.CharField(max_length=64)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    saved_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["script", "number"], name="one_version_per_number")]


class Expectation(models.TextChoices):
    ANYTHING = "anything", "runs without an error"
    EQUALS = "equals", "the result is exactly"
    CONTAINS = "contains", "the result contains"
    FAILS = "fails", "it fails, saying"


class TestCase(Row):
    """Arguments to try a tool with again, and what is expected of it."""

    __test__ = False  # not one of pytest's

    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="cases")
    name = models.CharField(max_length=120)
    arguments = JSONTextField(default=dict)
    expectation = models.CharField(max_length=8, choices=Expectation.choices, default=Expectation.ANYTHING)
    expected = JSONTextField(null=True, blank=True)
    last_call = models.ForeignKey(ToolCall, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["script", "name"], name="one_case_per_name"),
            models.CheckConstraint(condition=Q(expectation__in=Expectation.values), name="case_expectation_known"),
        ]


class StoreEntry(Row):
    """One value that tools of a group keep between calls."""

    group = models.CharField(max_length=64)
    key = models.CharField(max_length=200)
    value = JSONTextField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "key"], name="one_value_per_key")]


class Shipment(Row):
    """A tool of the library that was installed once, so that a deleted one does not come back."""

    name = models.CharField(max_length=64, primary_key=True)
    installed_at = models.DateTimeField(auto_now_add=True)
