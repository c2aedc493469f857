from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Mark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("event_id", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Total",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=64)),
                ("labels", models.CharField(help_text="Their values, in order, with spaces between.", max_length=200)),
                ("value", models.FloatField(default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("name", "labels"), name="one_total_per_name_and_labels")
                ],
            },
        ),
    ]
