from typing import Any

from django.db import migrations
from django.db.models import OuterRef, Subquery


def fill(apps: Any, _editor: Any) -> None:
    """Write the inherent risk of composed tools, so that no call is asked about without it until its server is read."""
    rows = apps.get_model("upstreams", "ComposedTool").objects.filter(tool=OuterRef("pk"))
    tools = apps.get_model("gate", "Tool").objects.filter(composed__isnull=False)
    tools.update(risk_inherent=Subquery(rows.values("risk_inherent")))


class Migration(migrations.Migration):
    dependencies = [("gate", "0003_inherent_risk"), ("upstreams", "0001_squashed")]

    # Taken back, there is nothing to do: the column goes.
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
