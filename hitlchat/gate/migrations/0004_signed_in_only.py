from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0003_passed_tests"),
    ]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="signed_in_only",
            field=models.BooleanField(default=False, help_text="The word of an MCP client is not enough for it."),
        ),
        migrations.AddField(
            model_name="decision",
            name="client",
            field=models.CharField(blank=True, help_text="What the MCP client called itself: a claim.", max_length=100),
        ),
        migrations.AddField(
            model_name="decision",
            name="token_name",
            field=models.CharField(blank=True, max_length=80),
        ),
        migrations.AlterField(
            model_name="decision",
            name="means",
            field=models.CharField(help_text="How the person was known, as an Actor has it.", max_length=16),
        ),
    ]
