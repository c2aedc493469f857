from typing import Any

from django.db import migrations
from django.db.models import OuterRef, Subquery


def connect(apps: Any, _schema_editor: Any) -> None:
    """Make a single branch of what each conversation holds, in the order in which its runs began."""
    run, conversation = apps.get_model("agent", "Run"), apps.get_model("agent", "Conversation")
    earlier = run.objects.filter(conversation=OuterRef("conversation"), created_at__lt=OuterRef("created_at"))
    run.objects.update(parent=Subquery(earlier.order_by("-created_at", "-pk").values("pk")[:1]))
    of = run.objects.filter(conversation=OuterRef("pk"))
    conversation.objects.update(tip=Subquery(of.order_by("-created_at", "-pk").values("pk")[:1]))


class Migration(migrations.Migration):
    dependencies = [("agent", "0006_branches")]

    operations = [migrations.RunPython(connect, migrations.RunPython.noop)]
