from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="ServerProcess",
            fields=[
                ("id", models.CharField(editable=False, max_length=32, primary_key=True, serialize=False)),
                ("host", models.CharField(max_length=255)),
                ("pid", models.PositiveIntegerField()),
                (
                    "lease_until",
                    models.DateTimeField(help_text="A server that was killed counts as running until then."),
                ),
                ("configuration", models.JSONField()),
            ],
        ),
    ]
