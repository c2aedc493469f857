import django.db.models.deletion
from django.db import migrations, models

import hitlchat.gate.models.ids


class Migration(migrations.Migration):
    dependencies = [("agent", "0007_one_branch")]

    operations = [
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
            options={"ordering": ["id"]},
        ),
    ]
