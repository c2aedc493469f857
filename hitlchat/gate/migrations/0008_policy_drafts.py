import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import hitlchat.base.canonical
import hitlchat.gate.models.ids


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0007_asked_why"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PolicyDraft",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True)),
                ("purpose", models.CharField(blank=True, max_length=500)),
                ("body", hitlchat.base.canonical.JSONTextField(help_text="As in a request: tools, policies.")),
                (
                    "base",
                    hitlchat.base.canonical.JSONTextField(
                        help_text="What was in force for each of its tools when it was made."
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("published_at", models.DateTimeField(null=True)),
                ("why", models.CharField(blank=True, max_length=500)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "publisher",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("published_at", None), ("publisher", None), ("why", "")),
                            models.Q(
                                ("published_at__isnull", False),
                                ("publisher__isnull", False),
                                models.Q(("why", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="draft_published_by_whom_and_why",
                    )
                ],
            },
        ),
    ]
