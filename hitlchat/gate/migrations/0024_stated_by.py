from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0023_delegation"),
    ]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="stated_by",
            field=models.BigIntegerField(
                editable=False, help_text="The event that states its guard; null: none yet.", null=True
            ),
        ),
    ]
