from django.db import migrations


class Migration(migrations.Migration):
    """Joins what landed side by side; 0014 and everything before it keep the dependencies they landed with."""

    dependencies = [
        ("gate", "0010_record"),
        ("gate", "0011_history"),
        ("gate", "0012_waiting_in_order"),
        ("gate", "0014_one_index_less"),
    ]

    operations = []
