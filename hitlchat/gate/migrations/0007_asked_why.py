from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0006_handling_and_hindsight"),
    ]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="why_until",
            field=models.DateTimeField(
                help_text="While the model is being asked: until when at the latest.", null=True
            ),
        ),
        migrations.AddField(
            model_name="approval",
            name="whys",
            field=models.PositiveSmallIntegerField(default=0, help_text="How often somebody asked the model why."),
        ),
    ]
