from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

LEVELS = ["L1", "L2", "L3", "L4", "L5"]


def fill(apps: Any, _editor: Any) -> None:
    """Mark the risk of composed tools as unknown: nobody has vouched for any, and their servers may not be read soon."""
    apps.get_model("gate", "Tool").objects.filter(composed__isnull=False).update(risk_unknown=True)


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0004_risk_unknown"),
        ("upstreams", "0002_inherent_risk"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="composedtool",
            name="vouch",
            field=models.CharField(
                blank=True,
                max_length=4,
                choices=[("scan", "Known: the level as estimated"), *((each, f"Known: {each}") for each in LEVELS)],
            ),
        ),
        migrations.AddField("composedtool", "vouched_digest", models.CharField(blank=True, max_length=64)),
        migrations.AddField("composedtool", "vouched_at", models.DateTimeField(null=True)),
        migrations.AddField(
            model_name="composedtool",
            name="vouched_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField("composedtool", "vouch_note", models.TextField(blank=True)),
        migrations.AddConstraint(
            model_name="composedtool",
            constraint=models.CheckConstraint(
                condition=models.Q(("vouch__in", ["", "scan", *LEVELS])), name="vouch_known"
            ),
        ),
        # Taken back, there is nothing to do: the column goes.
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
