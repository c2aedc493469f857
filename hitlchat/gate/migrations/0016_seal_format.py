from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0015_merge_branches"),
    ]

    operations = [
        migrations.AddField(
            model_name="seal",
            name="format",
            field=models.PositiveSmallIntegerField(
                null=True, help_text="How events are hashed (record/commitment.py). Null: 1."
            ),
        ),
    ]
