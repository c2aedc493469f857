from typing import Any

from django.db import migrations


def fill(apps: Any, _editor: Any) -> None:
    """Write the level that each composed tool has without what asking takes off, so that no start is without it."""
    tools = apps.get_model("gate", "Tool").objects
    for row in apps.get_model("upstreams", "ComposedTool").objects.exclude(tool=None).only("tool_id", "risk_inherent"):
        tools.filter(pk=row.tool_id).update(risk_inherent=row.risk_inherent)


class Migration(migrations.Migration):
    dependencies = [("gate", "0003_inherent_risk"), ("upstreams", "0001_squashed")]

    # Taken back, there is nothing to do: the column goes.
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
