import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import hitlchat.gate.models.ids


class Migration(migrations.Migration):
    dependencies = [
        ("agent", "0010_titling"),
    ]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="no_images_for",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AddField(
            model_name="run",
            name="refused_images",
            field=models.BooleanField(default=False, help_text="It failed, and without images it might not have."),
        ),
        migrations.CreateModel(
            name="Attachment",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("place", models.PositiveSmallIntegerField(default=0)),
                ("name", models.CharField(max_length=255)),
                ("media_type", models.CharField(max_length=100)),
                ("size", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("text", models.TextField(blank=True, default="")),
                ("length", models.PositiveIntegerField(default=0)),
                ("sent", models.PositiveIntegerField(default=0)),
                ("pages", models.PositiveIntegerField(default=0)),
                ("pages_read", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="attachments", to="agent.conversation"
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="agent.message",
                    ),
                ),
                (
                    "queued",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="attachments",
                        to="agent.queuedmessage",
                    ),
                ),
            ],
            options={
                "ordering": ["place", "id"],
                "indexes": [
                    models.Index(fields=["digest"], name="attachment_by_digest"),
                    models.Index(
                        condition=models.Q(("message__isnull", True), ("queued__isnull", True)),
                        fields=["created_at"],
                        name="attachment_unsent",
                    ),
                ],
            },
        ),
    ]
