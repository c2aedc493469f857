import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import hitlchat.gate.models.ids


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0009_second_opinions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Absence",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
            ],
            options={
                "ordering": ["since", "id"],
            },
        ),
        migrations.AddField(
            model_name="decision",
            name="absent",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="absent_name",
            field=models.CharField(blank=True, max_length=150),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=models.Q(("absent", models.F("person")), _negated=True), name="decision_for_somebody_else"
            ),
        ),
        migrations.AddField(
            model_name="absence",
            name="delegate",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="absence",
            name="person",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddConstraint(
            model_name="absence",
            constraint=models.CheckConstraint(
                condition=models.Q(("person", models.F("delegate")), _negated=True), name="absence_never_for_oneself"
            ),
        ),
        migrations.AddConstraint(
            model_name="absence",
            constraint=models.CheckConstraint(
                condition=models.Q(("until__gte", models.F("since"))), name="absence_ends_after_its_beginning"
            ),
        ),
    ]
