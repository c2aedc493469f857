import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import hitlchat.gate.canonical
import hitlchat.gate.models


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0003_passed_tests"),
        ("upstreams", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="UpstreamQuestion",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("server_name", models.CharField(max_length=64)),
                ("message", models.TextField(blank=True)),
                ("schema", hitlchat.gate.canonical.JSONTextField(default=dict)),
                ("url", models.TextField(blank=True, help_text="The address to be opened, instead of a form.")),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("deadline", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Waits for an answer"),
                            ("answered", "Answered"),
                            ("declined", "Not answered"),
                            ("expired", "Nobody answered in time"),
                            ("gone", "Taken back"),
                        ],
                        default="open",
                        max_length=8,
                    ),
                ),
                ("note", models.TextField(blank=True, help_text="Why nobody was asked, in words.")),
                ("means", models.CharField(blank=True, max_length=16)),
                ("answered_at", models.DateTimeField(null=True)),
                (
                    "fields",
                    hitlchat.gate.canonical.JSONTextField(
                        default=list, help_text="Which fields the answer had, by name."
                    ),
                ),
                ("sealed", models.TextField(blank=True)),
                (
                    "answered_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "call",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="questions", to="gate.toolcall"
                    ),
                ),
            ],
            options={
                "ordering": ["asked_at", "id"],
                "indexes": [
                    models.Index(condition=models.Q(("state", "open")), fields=["asked_at"], name="question_open")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["open", "answered", "declined", "expired", "gone"])),
                        name="question_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("sealed", ""), ("state", "answered"), _connector="OR"),
                        name="only_answers_are_sealed",
                    ),
                ],
            },
        ),
    ]
