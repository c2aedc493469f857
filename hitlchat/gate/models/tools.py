"""A tool: one row whatever its source."""

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from hitlchat.gate.canonical import JSONTextField
from hitlchat.gate.models.ids import new_id

NAME_PATTERN = r"[A-Za-z0-9_-]{1,64}"
TOOL_NAME = RegexValidator(
    rf"\A{NAME_PATTERN}\Z", "Use 1 to 64 letters (a to z), digits, underscores and hyphens.", "name"
)
# In seconds: how long a question may be open at most, from when it was asked.
LONGEST_DEADLINE = 30 * 86400
DEFAULT_PROMPT = "Run '{toolName}' with arguments {args}?"


class HitlMode(models.TextChoices):
    REQUIRED = "REQUIRED", "Ask every time"
    CONDITIONAL = "CONDITIONAL", "Policies decide"
    DISABLED = "DISABLED", "Never ask"


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


class FormerTool(models.Model):
    """What had people asked about the last tool of a name: the next one of that name inherits it.

    Without this, whoever may delete a tool and make another one could have its calls run unseen, or decided by others.
    """

    name = models.CharField(max_length=64, primary_key=True)
    hitl_mode = models.CharField(max_length=16, choices=HitlMode.choices)
    condition = models.TextField(blank=True, max_length=2000)
    signed_in_only = models.BooleanField(default=False)
    risk_level = models.PositiveSmallIntegerField()
    rules = JSONTextField(null=True, help_text="Who decided, as the columns of Oversight; null: the requester.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(hitl_mode__in=HitlMode.values), name="former_hitl_mode_known"),
        ]

    def __str__(self) -> str:
        return self.name
