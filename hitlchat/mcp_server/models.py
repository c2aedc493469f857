"""Rows of tokens for /mcp and what each may do, and of what the clients of waiting calls were told."""

from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q

from hitlchat.accounts.models import Token
from hitlchat.base.canonical import JSONTextField
from hitlchat.base.rows import Row
from hitlchat.gate.models import ToolCall


class WithoutElicitation(models.TextChoices):
    """Ways to ask about a call whose client cannot ask its user."""

    DENY = "deny", "Not at all: the call is refused"
    INBOX = "inbox", "In the inbox, while the call waits"
    URL = "url", "In the inbox, to which the client gets a link"


class McpToken(Row):
    """The limits of one token of kind “mcp”. A token without this row has the defaults."""

    token = models.OneToOneField(Token, primary_key=True, on_delete=models.CASCADE, related_name="mcp")
    tools = JSONTextField(null=True, blank=True, help_text="Names of the tools it may use; null means all.")
    ceiling = models.PositiveSmallIntegerField(
        default=5, validators=[MaxValueValidator(5)], help_text="No tool of a higher risk is offered."
    )
    without_elicitation = models.CharField(
        max_length=8, choices=WithoutElicitation.choices, default=WithoutElicitation.DENY
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(ceiling__lte=5), name="mcp_ceiling_0_to_5"),
            models.CheckConstraint(
                condition=Q(without_elicitation__in=WithoutElicitation.values), name="mcp_without_elicitation_known"
            ),
        ]


class Submission(Row):
    """A call that came in over MCP: by which token, and what its client has got so far."""

    call = models.OneToOneField(ToolCall, primary_key=True, on_delete=models.PROTECT, related_name="mcp")
    token = models.ForeignKey(Token, null=True, on_delete=models.SET_NULL, related_name="+")
    request = models.CharField(max_length=64, help_text="SHA-256 of the tool's name and the arguments as they came.")
    questions = models.PositiveIntegerField(default=0, help_text="How many its client has got.")
    answered = models.PositiveIntegerField(default=0, help_text="The last of them that it sent an answer to.")
    parked_at = models.DateTimeField(null=True, help_text="Since when its client knows that it is to come back.")
    held_until = models.DateTimeField(null=True, help_text="Until when a process vouches that its client waits there.")
    ends = models.BooleanField(default=False, help_text="Whether its question is over once its client is gone.")

    class Meta:
        indexes = [
            # The next identical call picks it up.
            models.Index(fields=["token", "request"], condition=Q(parked_at__isnull=False), name="mcp_parked"),
            # What a process has left that died.
            models.Index(fields=["held_until"], condition=Q(held_until__isnull=False), name="mcp_held"),
        ]
