from django.db import migrations, models

import hitlchat.gate.canonical


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0017_decisions_by_means"),
    ]

    operations = [
        migrations.CreateModel(
            name="FormerTool",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                (
                    "hitl_mode",
                    models.CharField(
                        choices=[
                            ("REQUIRED", "Ask every time"),
                            ("CONDITIONAL", "Policies decide"),
                            ("DISABLED", "Never ask"),
                        ],
                        max_length=16,
                    ),
                ),
                ("condition", models.TextField(blank=True, max_length=2000)),
                ("signed_in_only", models.BooleanField(default=False)),
                ("risk_level", models.PositiveSmallIntegerField()),
                (
                    "rules",
                    hitlchat.gate.canonical.JSONTextField(
                        help_text="Who decided, as the columns of Oversight; null: the requester.", null=True
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("hitl_mode__in", ["REQUIRED", "CONDITIONAL", "DISABLED"])),
                        name="former_hitl_mode_known",
                    )
                ],
            },
        ),
    ]
