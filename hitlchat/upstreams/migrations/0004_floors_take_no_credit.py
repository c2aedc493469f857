"""Levels that something set which a tool does: asking about each call takes nothing off any more."""

from typing import Any

from django.db import migrations
from django.db.models import F


def raise_levels(apps: Any, _: Any) -> None:
    apps.get_model("upstreams", "ComposedTool").objects.exclude(risk_floor="").update(risk_effective=F("risk_inherent"))


class Migration(migrations.Migration):
    dependencies = [
        ("upstreams", "0003_sign_in"),
    ]

    operations = [
        migrations.RunPython(raise_levels, migrations.RunPython.noop),
    ]
