from importlib import import_module

import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import hitlchat.base.canonical
import hitlchat.gate.models.ids

# Both the table of SQLite and the index of PostgreSQL are beyond models.
search = import_module("hitlchat.agent.migrations.0005_search_index")


class Migration(migrations.Migration):
    replaces = [
        ("agent", "0001_initial"),
        ("agent", "0002_sent_messages"),
        ("agent", "0003_what_a_server_added"),
        ("agent", "0004_kept_and_searched"),
        ("agent", "0005_search_index"),
        ("agent", "0006_branches"),
        ("agent", "0007_one_branch"),
        ("agent", "0008_queued_messages"),
        ("agent", "0009_share"),
        ("agent", "0010_titling"),
        ("agent", "0011_attachments"),
        ("agent", "0012_endpoints"),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ModelEndpoint",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("base_url", models.TextField()),
                ("key", models.TextField(blank=True)),
                (
                    "key_header",
                    models.CharField(
                        choices=[("Authorization", "Authorization: Bearer"), ("api-key", "api-key (Azure)")],
                        default="Authorization",
                        max_length=13,
                    ),
                ),
                ("model", models.CharField(help_text="Asked where a conversation names no other.", max_length=200)),
                (
                    "other_models",
                    hitlchat.base.canonical.JSONTextField(
                        default=list, help_text="Names of the others that conversations may choose."
                    ),
                ),
                ("context_length", models.PositiveIntegerField(null=True)),
                ("images", models.BooleanField(default=True)),
                ("reasoning", models.BooleanField(default=False)),
                ("parallel_calls", models.BooleanField(default=True)),
                ("input_price", models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                ("output_price", models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                (
                    "allow_private",
                    models.BooleanField(default=False, help_text="Its public name may lead to a private address."),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("is_default", models.BooleanField(default=False, help_text="New conversations begin with it.")),
                ("removed_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        condition=models.Q(("removed_at", None)),
                        name="one_endpoint_of_a_name",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)), fields=("is_default",), name="one_default_endpoint"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("title", models.CharField(blank=True, max_length=200)),
                (
                    "titling",
                    models.CharField(
                        blank=True,
                        choices=[("", "No"), ("due", "After the first answer"), ("asked", "It was asked")],
                        default="",
                        max_length=5,
                    ),
                ),
                ("model", models.CharField(blank=True, max_length=200)),
                (
                    "tools",
                    hitlchat.base.canonical.JSONTextField(
                        help_text="Names of the tools it may use; null means all published ones.", null=True
                    ),
                ),
                (
                    "instructions",
                    models.TextField(blank=True, default="", help_text="What the model is told in it beforehand."),
                ),
                ("no_images_for", models.TextField(blank=True, default="")),
                (
                    "share",
                    models.UUIDField(help_text="In the link by which colleagues may read it.", null=True, unique=True),
                ),
                ("pinned_at", models.DateTimeField(null=True)),
                ("archived_at", models.DateTimeField(null=True)),
                (
                    "deleted_at",
                    models.DateTimeField(help_text="It can be brought back for a moment, and then is gone.", null=True),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="conversations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="agent.modelendpoint",
                    ),
                ),
            ],
            options={
                "ordering": ["-updated_at"],
            },
        ),
        migrations.CreateModel(
            name="QueuedMessage",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("content", models.TextField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="queued", to="agent.conversation"
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "shown",
                    models.BooleanField(
                        default=True, help_text="It is on the branch that people see and the model reads."
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("running", "Working"),
                            ("waiting", "Waiting for an answer"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("stopped", "Stopped"),
                        ],
                        default="running",
                        max_length=8,
                    ),
                ),
                ("error", models.TextField(blank=True)),
                (
                    "retrying",
                    models.TextField(blank=True, default="", help_text="Why the model is about to be asked once more."),
                ),
                (
                    "refused_images",
                    models.BooleanField(default=False, help_text="It failed, and without images it might not have."),
                ),
                ("turn_id", models.UUIDField(null=True)),
                ("turns", models.PositiveSmallIntegerField(default=0)),
                ("parked", models.BooleanField(default=False)),
                ("owner", models.CharField(blank=True, max_length=36)),
                ("lease_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="agent.conversation"
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        help_text="The run before it.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="children",
                        to="agent.run",
                    ),
                ),
            ],
            options={
                "ordering": ["created_at"],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("seq", models.PositiveIntegerField()),
                (
                    "role",
                    models.CharField(
                        choices=[("user", "You"), ("assistant", "Assistant"), ("tool", "Tool"), ("notice", "hitlchat")],
                        max_length=10,
                    ),
                ),
                ("content", models.TextField(blank=True)),
                ("reasoning", models.TextField(blank=True, default="")),
                ("wire", models.TextField(blank=True)),
                ("echo", models.TextField(blank=True, default="")),
                ("echo_to", models.TextField(blank=True, default="")),
                (
                    "state",
                    models.CharField(
                        choices=[("streaming", "Being written"), ("complete", "Complete"), ("cut", "Cut off")],
                        default="complete",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="messages", to="agent.conversation"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="messages", to="agent.run"
                    ),
                ),
            ],
            options={
                "ordering": ["seq"],
            },
        ),
        migrations.AddField(
            model_name="conversation",
            name="tip",
            field=models.ForeignKey(
                help_text="The last run of the shown branch.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="agent.run",
            ),
        ),
        migrations.CreateModel(
            name="SearchText",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("words", models.TextField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="agent.conversation"
                    ),
                ),
                (
                    "message",
                    models.OneToOneField(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="agent.message"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SentMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=200)),
                ("digest", models.CharField(max_length=64)),
                ("made_at", models.DateTimeField()),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="agent.message"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ModelUse",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("conversation_id", models.UUIDField()),
                ("run_id", models.UUIDField(null=True)),
                ("message_id", models.UUIDField(null=True)),
                ("model", models.CharField(max_length=200)),
                ("input_tokens", models.PositiveIntegerField()),
                ("output_tokens", models.PositiveIntegerField()),
                ("cached_tokens", models.PositiveIntegerField(default=0)),
                ("reasoning_tokens", models.PositiveIntegerField(default=0)),
                ("cost", models.BigIntegerField(null=True)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "endpoint",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="agent.modelendpoint",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["person", "at"], name="use_by_person"),
                    models.Index(fields=["conversation_id"], name="use_by_conversation"),
                    models.Index(fields=["at"], name="use_by_time"),
                ],
            },
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
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status__in", ("running", "waiting"))), fields=["lease_until"], name="run_active"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("turn_id__isnull", False)), fields=["turn_id"], name="run_by_turn"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ("running", "waiting"))),
                fields=("conversation",),
                name="one_active_run",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["running", "waiting", "done", "failed", "stopped"])),
                name="run_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(fields=("conversation", "seq"), name="message_order"),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(fields=["owner", "-updated_at"], name="conversation_by_owner"),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", False)), fields=["deleted_at"], name="conversation_deleted"
            ),
        ),
        migrations.AddConstraint(
            model_name="searchtext",
            constraint=models.UniqueConstraint(
                condition=models.Q(("message__isnull", True)), fields=("conversation",), name="one_title_to_search"
            ),
        ),
        migrations.AddConstraint(
            model_name="sentmessage",
            constraint=models.UniqueConstraint(fields=("owner", "key"), name="one_message_for_a_key"),
        ),
        migrations.RunPython(search.put_on, search.take_off),
    ]
