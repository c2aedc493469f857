from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

COLUMNS = {
    "attachment": ("call_id",),
    "auditevent": ("actor_id",),
    "decision": ("approval_id", "person_id"),
    "showing": ("approval_id",),
    "toolcall": ("caller_id", "grant_id"),
}


def drop(_apps: Any, editor: Any) -> None:
    """Drop the indexes by themselves: Django would write these tables, which may be large, anew on SQLite."""
    for model, columns in COLUMNS.items():
        with editor.connection.cursor() as cursor:
            found = editor.connection.introspection.get_constraints(cursor, f"gate_{model}")
        for name, each in found.items():
            if each["index"] and any(name.startswith(f"gate_{model}_{column}_") for column in columns):
                editor.execute(f"DROP INDEX {editor.quote_name(name)}")


class Migration(migrations.Migration):
    replaces = [
        ("gate", "0021_fewer_indexes"),
        ("gate", "0022_stricter_conversations"),
        ("gate", "0023_delegation"),
        ("gate", "0024_stated_by"),
        ("gate", "0025_last_statement"),
    ]

    dependencies = [
        ("gate", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Delegation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("conversation_id", models.UUIDField()),
                ("distance", models.PositiveSmallIntegerField()),
                ("above_id", models.UUIDField(null=True)),
            ],
            options={
                "ordering": ["conversation_id", "distance"],
            },
        ),
        migrations.CreateModel(
            name="Strictness",
            fields=[
                ("conversation_id", models.UUIDField(primary_key=True, serialize=False)),
                ("asks", models.CharField(max_length=16)),
            ],
        ),
        migrations.AddField(
            model_name="auditevent",
            name="guard_of",
            field=models.UUIDField(editable=False, help_text="The tool whose guard it states.", null=True),
        ),
        migrations.AddField(
            model_name="tool",
            name="stated_by",
            field=models.BigIntegerField(
                editable=False, help_text="The event that states its guard; null: none yet.", null=True
            ),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="attachment",
                    name="call",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attachments",
                        to="gate.toolcall",
                    ),
                ),
                migrations.AlterField(
                    model_name="auditevent",
                    name="actor",
                    field=models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                migrations.AlterField(
                    model_name="decision",
                    name="approval",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="gate.approval",
                    ),
                ),
                migrations.AlterField(
                    model_name="decision",
                    name="person",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                migrations.AlterField(
                    model_name="showing",
                    name="approval",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="showings",
                        to="gate.approval",
                    ),
                ),
                migrations.AlterField(
                    model_name="toolcall",
                    name="caller",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tool_calls",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                migrations.AlterField(
                    model_name="toolcall",
                    name="grant",
                    field=models.ForeignKey(
                        db_index=False,
                        help_text="What it runs on unasked.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="covered",
                        to="gate.grant",
                    ),
                ),
            ],
            # Taken back, it leaves the indexes out: nothing depends on them.
            database_operations=[migrations.RunPython(drop, migrations.RunPython.noop)],
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                condition=models.Q(("guard_of__isnull", False)), fields=["guard_of", "id"], name="audit_by_guard"
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(condition=models.Q(("grant__isnull", False)), fields=["grant"], name="call_by_grant"),
        ),
        migrations.AddField(
            model_name="delegation",
            name="call",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="gate.toolcall"
            ),
        ),
        migrations.AddIndex(
            model_name="delegation",
            index=models.Index(
                condition=models.Q(("above_id__isnull", False)), fields=["above_id"], name="delegated_below"
            ),
        ),
        migrations.AddConstraint(
            model_name="delegation",
            constraint=models.UniqueConstraint(fields=("conversation_id", "distance"), name="one_agent_at_a_distance"),
        ),
        migrations.AddConstraint(
            model_name="delegation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("distance", 1)), fields=("call",), name="one_conversation_of_a_call"
            ),
        ),
    ]
