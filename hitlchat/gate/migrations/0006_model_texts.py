import django.db.models.deletion
from django.db import migrations, models

import hitlchat.gate.models.ids


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0004_signed_in_only"),
    ]

    operations = [
        migrations.CreateModel(
            name="ModelText",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("declined", "Declined"),
                            ("feedback", "Declined with a reason"),
                            ("edited", "Approved with changes"),
                            ("expired", "Not answered in time"),
                            ("refused", "Refused by a rule"),
                        ],
                        max_length=8,
                    ),
                ),
                ("text", models.CharField(max_length=500)),
                (
                    "tool",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="model_texts",
                        to="gate.tool",
                    ),
                ),
            ],
            options={
                "ordering": ["outcome"],
                "constraints": [
                    models.UniqueConstraint(fields=("tool", "outcome"), name="one_text_per_tool_and_outcome"),
                    models.UniqueConstraint(
                        condition=models.Q(("tool", None)), fields=("outcome",), name="one_text_per_outcome"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("outcome__in", ["declined", "feedback", "edited", "expired", "refused"])),
                        name="text_outcome_known",
                    ),
                ],
            },
        ),
    ]
