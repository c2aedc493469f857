from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("gate", "0002_squashed")]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="risk_inherent",
            field=models.PositiveSmallIntegerField(
                default=0,
                help_text="The level without what asking every time takes off; risk_level, if that is higher.",
            ),
        ),
    ]
