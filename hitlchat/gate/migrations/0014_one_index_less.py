from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0013_showings"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="toolcall",
            name="call_by_deciders",
        ),
    ]
