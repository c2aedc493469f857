import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import hitlchat.base.canonical
import hitlchat.gate.models.ids


class Migration(migrations.Migration):
    replaces = [
        ("agent", "0010_titling"),
        ("agent", "0011_attachments"),
        ("agent", "0012_endpoints"),
        ("agent", "0013_endpoint_api"),
        ("agent", "0014_summaries"),
        ("agent", "0015_limits"),
        ("agent", "0016_drafts"),
        ("agent", "0017_tool_sets"),
        ("agent", "0018_agents"),
        ("agent", "0019_titles"),
    ]

    dependencies = [
        ("agent", "0001_squashed"),
        ("gate", "0002_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="call",
            field=models.OneToOneField(
                help_text="Of the agent tool that works here; null in a conversation of a person.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="gate.toolcall",
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="draft",
            field=models.BooleanField(
                default=False, help_text="It began with a file on the start page; until something is said or set in it."
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="least_asks",
            field=models.CharField(blank=True, default="", max_length=16),
        ),
        migrations.AddField(
            model_name="conversation",
            name="max_tokens",
            field=models.PositiveIntegerField(help_text="Of one answer.", null=True),
        ),
        migrations.AddField(
            model_name="conversation",
            name="max_turns",
            field=models.PositiveSmallIntegerField(help_text="After so many a run is stopped.", null=True),
        ),
        migrations.AddField(
            model_name="conversation",
            name="no_images_for",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AddField(
            model_name="conversation",
            name="no_temperature_for",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AddField(
            model_name="conversation",
            name="preset",
            field=models.CharField(
                blank=True, default="", help_text="That it began with, as it was called.", max_length=64
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="temperature",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="conversation",
            name="titling",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "No"),
                    ("due", "After the first answer"),
                    ("asked", "It was asked"),
                    ("made", "The model made it"),
                    ("own", "A person gave it"),
                ],
                default="",
                max_length=5,
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="token_budget",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="message",
            name="stands_for",
            field=hitlchat.base.canonical.JSONTextField(null=True),
        ),
        migrations.AddField(
            model_name="message",
            name="undone",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="run",
            name="refused_images",
            field=models.BooleanField(default=False, help_text="It failed, and without images it might not have."),
        ),
        migrations.AddField(
            model_name="run",
            name="retrying",
            field=models.TextField(blank=True, default="", help_text="Why the model is about to be asked once more."),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="tools",
            field=hitlchat.base.canonical.JSONTextField(
                help_text="Names of the tools it may use, picked one by one.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="role",
            field=models.CharField(
                choices=[
                    ("user", "You"),
                    ("assistant", "Assistant"),
                    ("tool", "Tool"),
                    ("notice", "hitlchat"),
                    ("summary", "Summary"),
                ],
                max_length=10,
            ),
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
            },
        ),
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
                (
                    "api",
                    models.CharField(
                        choices=[("chat", "Chat Completions"), ("responses", "Responses API")],
                        default="chat",
                        max_length=9,
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
            name="AgentTool",
            fields=[
                (
                    "tool",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="agent",
                        serialize=False,
                        to="gate.tool",
                    ),
                ),
                ("instructions", models.TextField()),
                (
                    "tools",
                    hitlchat.base.canonical.JSONTextField(
                        default=list, help_text="Names of the tools it may use, and of no others."
                    ),
                ),
                (
                    "own_model",
                    models.BooleanField(default=False, help_text="Not that of the conversation that calls it."),
                ),
                ("model", models.CharField(blank=True, default="", max_length=200)),
                ("max_turns", models.PositiveSmallIntegerField(null=True)),
                (
                    "max_tokens",
                    models.PositiveIntegerField(
                        help_text="Of all its answers to one call, with what it read.", null=True
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
        ),
        migrations.AddField(
            model_name="conversation",
            name="endpoint",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="agent.modelendpoint"
            ),
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
        ),
        migrations.CreateModel(
            name="ToolSet",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("description", models.CharField(blank=True, default="", max_length=300)),
                (
                    "tools",
                    hitlchat.base.canonical.JSONTextField(
                        default=list, help_text="Names of tools, whether they are there now or not."
                    ),
                ),
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
                        name="one_tool_set_of_a_name",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)), fields=("is_default",), name="one_default_tool_set"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Preset",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("description", models.CharField(blank=True, default="", max_length=300)),
                ("instructions", models.TextField(blank=True, default="")),
                ("chooses_model", models.BooleanField(default=False)),
                ("model", models.CharField(blank=True, default="", max_length=200)),
                ("starters", hitlchat.base.canonical.JSONTextField(default=list, help_text="Sentences to begin with.")),
                ("temperature", models.FloatField(null=True)),
                ("max_tokens", models.PositiveIntegerField(null=True)),
                ("max_turns", models.PositiveSmallIntegerField(null=True)),
                ("asks", models.CharField(default="tools", help_text="A word of gate.Asks.", max_length=16)),
                ("published", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
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
                    "tool_set",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="presets",
                        to="agent.toolset",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="OwnDefaults",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("instructions", models.TextField(blank=True, default="")),
                ("temperature", models.FloatField(null=True)),
                ("max_tokens", models.PositiveIntegerField(null=True)),
                ("max_turns", models.PositiveSmallIntegerField(null=True)),
                ("all_tools", models.BooleanField(default=False)),
                ("tools", hitlchat.base.canonical.JSONTextField(null=True)),
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "tool_set",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="agent.toolset"
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="conversation",
            name="tool_set",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="agent.toolset"
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(("temperature__isnull", True), ("temperature__range", (0, 2)), _connector="OR"),
                name="conversation_temperature",
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_tokens__isnull", True), ("max_tokens__range", (1, 1000000)), _connector="OR"),
                name="conversation_max_tokens",
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_turns__isnull", True), ("max_turns__range", (1, 100)), _connector="OR"),
                name="conversation_max_turns",
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(("tools__isnull", True), ("tool_set", None), _connector="OR"),
                name="conversation_tools_one_way",
            ),
        ),
        migrations.AddIndex(
            model_name="attachment",
            index=models.Index(fields=["digest"], name="attachment_by_digest"),
        ),
        migrations.AddIndex(
            model_name="attachment",
            index=models.Index(
                condition=models.Q(("message__isnull", True), ("queued__isnull", True)),
                fields=["created_at"],
                name="attachment_unsent",
            ),
        ),
        migrations.AddConstraint(
            model_name="agenttool",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_turns__isnull", True), ("max_turns__range", (1, 100)), _connector="OR"),
                name="agent_max_turns",
            ),
        ),
        migrations.AddConstraint(
            model_name="agenttool",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("max_tokens__isnull", True), ("max_tokens__range", (1, 1000000000)), _connector="OR"
                ),
                name="agent_max_tokens",
            ),
        ),
        migrations.AddIndex(
            model_name="modeluse",
            index=models.Index(fields=["person", "at"], name="use_by_person"),
        ),
        migrations.AddIndex(
            model_name="modeluse",
            index=models.Index(fields=["conversation_id"], name="use_by_conversation"),
        ),
        migrations.AddIndex(
            model_name="modeluse",
            index=models.Index(fields=["at"], name="use_by_time"),
        ),
        migrations.AddConstraint(
            model_name="preset",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.Lower("name"), name="one_preset_of_a_name"
            ),
        ),
        migrations.AddConstraint(
            model_name="preset",
            constraint=models.CheckConstraint(
                condition=models.Q(("temperature__isnull", True), ("temperature__range", (0, 2)), _connector="OR"),
                name="preset_temperature",
            ),
        ),
        migrations.AddConstraint(
            model_name="preset",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_tokens__isnull", True), ("max_tokens__range", (1, 1000000)), _connector="OR"),
                name="preset_max_tokens",
            ),
        ),
        migrations.AddConstraint(
            model_name="preset",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_turns__isnull", True), ("max_turns__range", (1, 100)), _connector="OR"),
                name="preset_max_turns",
            ),
        ),
        migrations.AddConstraint(
            model_name="owndefaults",
            constraint=models.CheckConstraint(
                condition=models.Q(("temperature__isnull", True), ("temperature__range", (0, 2)), _connector="OR"),
                name="default_temperature",
            ),
        ),
        migrations.AddConstraint(
            model_name="owndefaults",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_tokens__isnull", True), ("max_tokens__range", (1, 1000000)), _connector="OR"),
                name="default_max_tokens",
            ),
        ),
        migrations.AddConstraint(
            model_name="owndefaults",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_turns__isnull", True), ("max_turns__range", (1, 100)), _connector="OR"),
                name="default_max_turns",
            ),
        ),
    ]
