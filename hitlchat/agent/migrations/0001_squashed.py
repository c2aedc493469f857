from typing import Any

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import hitlchat.base.canonical
import hitlchat.gate.models.ids

ON = {
    "sqlite": (
        "CREATE VIRTUAL TABLE agent_search USING fts5("
        "words, content='agent_searchtext', content_rowid='id', tokenize='unicode61')",
        "CREATE TRIGGER agent_search_insert AFTER INSERT ON agent_searchtext BEGIN"
        " INSERT INTO agent_search(rowid, words) VALUES (new.id, new.words); END",
        "CREATE TRIGGER agent_search_delete AFTER DELETE ON agent_searchtext BEGIN"
        " INSERT INTO agent_search(agent_search, rowid, words) VALUES ('delete', old.id, old.words); END",
        "CREATE TRIGGER agent_search_update AFTER UPDATE ON agent_searchtext BEGIN"
        " INSERT INTO agent_search(agent_search, rowid, words) VALUES ('delete', old.id, old.words);"
        " INSERT INTO agent_search(rowid, words) VALUES (new.id, new.words); END",
    ),
    "postgresql": ("CREATE INDEX agent_search ON agent_searchtext USING gin (to_tsvector('simple', words))",),
}
OFF = {
    "sqlite": (
        "DROP TRIGGER agent_search_insert",
        "DROP TRIGGER agent_search_delete",
        "DROP TRIGGER agent_search_update",
        "DROP TABLE agent_search",
    ),
    "postgresql": ("DROP INDEX agent_search",),
}


def put_on(_apps: Any, schema_editor: Any) -> None:
    for statement in ON[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def take_off(_apps: Any, schema_editor: Any) -> None:
    for statement in OFF[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    initial = True

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
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
        migrations.RunPython(put_on, take_off),
    ]
