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
    dependencies = [
        ("gate", "0020_attachments"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
            model_name="toolcall",
            index=models.Index(condition=models.Q(("grant__isnull", False)), fields=["grant"], name="call_by_grant"),
        ),
    ]
