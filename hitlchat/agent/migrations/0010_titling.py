from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent", "0009_share")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="titling",
            field=models.CharField(
                blank=True,
                choices=[("", "No"), ("due", "After the first answer"), ("asked", "It was asked")],
                default="",
                max_length=5,
            ),
        ),
    ]
