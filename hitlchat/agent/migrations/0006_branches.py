import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent", "0005_search_index")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="tip",
            field=models.ForeignKey(
                help_text="The last run of the shown branch.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="agent.run",
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="reasoning",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AddField(
            model_name="run",
            name="parent",
            field=models.ForeignKey(
                help_text="The run before it.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="children",
                to="agent.run",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="shown",
            field=models.BooleanField(
                default=True, help_text="It is on the branch that people see and the model reads."
            ),
        ),
    ]
