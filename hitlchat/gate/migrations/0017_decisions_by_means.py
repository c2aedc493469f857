"""An index for the history: what was answered by the word of an MCP client."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0016_seal_format"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["means", "approval"], name="decision_by_means"),
        ),
    ]
