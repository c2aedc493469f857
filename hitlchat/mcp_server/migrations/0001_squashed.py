import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import hitlchat.base.canonical


class Migration(migrations.Migration):
    initial = True

    replaces = [("mcp_server", "0001_initial"), ("mcp_server", "0002_limits_only"), ("mcp_server", "0003_held")]

    dependencies = [
        ("accounts", "0001_squashed"),
        ("gate", "0001_squashed"),
    ]

    operations = [
        migrations.CreateModel(
            name="McpToken",
            fields=[
                (
                    "token",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="mcp",
                        serialize=False,
                        to="accounts.token",
                    ),
                ),
                (
                    "tools",
                    hitlchat.base.canonical.JSONTextField(
                        blank=True, help_text="Names of the tools it may use; null means all.", null=True
                    ),
                ),
                (
                    "ceiling",
                    models.PositiveSmallIntegerField(
                        default=5,
                        help_text="No tool of a higher risk is offered.",
                        validators=[django.core.validators.MaxValueValidator(5)],
                    ),
                ),
                (
                    "without_elicitation",
                    models.CharField(
                        choices=[
                            ("deny", "Not at all: the call is refused"),
                            ("inbox", "In the inbox, while the call waits"),
                            ("url", "In the inbox, to which the client gets a link"),
                        ],
                        default="deny",
                        max_length=8,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("ceiling__lte", 5)), name="mcp_ceiling_0_to_5"),
                    models.CheckConstraint(
                        condition=models.Q(("without_elicitation__in", ["deny", "inbox", "url"])),
                        name="mcp_without_elicitation_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Submission",
            fields=[
                (
                    "call",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="mcp",
                        serialize=False,
                        to="gate.toolcall",
                    ),
                ),
                (
                    "request",
                    models.CharField(
                        help_text="SHA-256 of the tool's name and the arguments as they came.", max_length=64
                    ),
                ),
                ("questions", models.PositiveIntegerField(default=0, help_text="How many its client has got.")),
                (
                    "answered",
                    models.PositiveIntegerField(default=0, help_text="The last of them that it sent an answer to."),
                ),
                (
                    "parked_at",
                    models.DateTimeField(help_text="Since when its client knows that it is to come back.", null=True),
                ),
                (
                    "held_until",
                    models.DateTimeField(
                        help_text="Until when a process vouches that its client waits there.", null=True
                    ),
                ),
                (
                    "ends",
                    models.BooleanField(
                        default=False, help_text="Whether its question is over once its client is gone."
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.token"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("parked_at__isnull", False)), fields=["token", "request"], name="mcp_parked"
                    ),
                    models.Index(
                        condition=models.Q(("held_until__isnull", False)), fields=["held_until"], name="mcp_held"
                    ),
                ],
            },
        ),
    ]
