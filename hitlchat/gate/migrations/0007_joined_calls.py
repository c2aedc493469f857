from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0006_model_texts"),
    ]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="same",
            field=models.CharField(blank=True, help_text="Equal for identical calls, which are joined.", max_length=64),
        ),
    ]
