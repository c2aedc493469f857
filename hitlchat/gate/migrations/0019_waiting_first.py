"""Make the indexes of what waits the newest: of indexes that serve a query as well, SQLite takes the newest.

In which order 0011 and 0012 ran differs between databases.
"""

from django.db import migrations, models

WAITING = (
    models.Index(
        condition=models.Q(("status", "waiting"), models.Q(("decided_by", "requester"), _negated=True)),
        fields=["decided_by", "decider_group", "deadline"],
        name="call_by_deciders_waiting",
    ),
    models.Index(
        condition=models.Q(("escalates_to__isnull", False), ("status", "waiting")),
        fields=["escalates_to", "deadline"],
        name="call_by_second_group_waiting",
    ),
)


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0018_former_tools"),
    ]

    operations = [
        operation
        for index in WAITING
        for operation in (
            migrations.RemoveIndex(model_name="toolcall", name=index.name),
            migrations.AddIndex(model_name="toolcall", index=index),
        )
    ]
