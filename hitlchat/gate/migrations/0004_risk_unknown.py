from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("gate", "0003_inherent_risk")]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="risk_unknown",
            field=models.BooleanField(
                default=False,
                help_text="The level rests on what the tool's own source says, and nobody here vouches for it.",
            ),
        ),
    ]
