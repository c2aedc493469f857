from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_server", "0002_limits_only"),
    ]

    operations = [
        migrations.AddField(
            model_name="submission",
            name="ends",
            field=models.BooleanField(default=False, help_text="Whether its question is over once its client is gone."),
        ),
        migrations.AddField(
            model_name="submission",
            name="held_until",
            field=models.DateTimeField(
                help_text="Until when a process vouches that its client waits there.", null=True
            ),
        ),
        migrations.AddIndex(
            model_name="submission",
            index=models.Index(
                condition=models.Q(("held_until__isnull", False)), fields=["held_until"], name="mcp_held"
            ),
        ),
    ]
