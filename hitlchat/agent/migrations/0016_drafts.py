from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agent", "0015_limits"),
    ]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="draft",
            field=models.BooleanField(
                default=False, help_text="It began with a file on the start page; until something is said or set in it."
            ),
        ),
    ]
