from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent", "0008_queued_messages")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="share",
            field=models.UUIDField(help_text="In the link by which colleagues may read it.", null=True, unique=True),
        ),
    ]
