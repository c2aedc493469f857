from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gate", "0004_risk_unknown"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="decision",
            name="decision_verdict_known",
        ),
        migrations.RemoveConstraint(
            model_name="toolcall",
            name="call_status_known",
        ),
        migrations.AlterField(
            model_name="decision",
            name="verdict",
            field=models.CharField(
                choices=[
                    ("approve", "Approve"),
                    ("decline", "Decline"),
                    ("suggest", "Decline and say what to do instead"),
                    ("answer", "Answer in the tool's place"),
                ],
                max_length=8,
            ),
        ),
        migrations.AlterField(
            model_name="toolcall",
            name="status",
            field=models.CharField(
                choices=[
                    ("rejected", "Rejected"),
                    ("refused", "Refused"),
                    ("allowed", "Allowed"),
                    ("waiting", "Waiting"),
                    ("approved", "Approved"),
                    ("declined", "Declined"),
                    ("answered", "Answered by a person"),
                    ("expired", "Expired"),
                    ("withdrawn", "Withdrawn"),
                    ("executing", "Executing"),
                    ("succeeded", "Succeeded"),
                    ("failed", "Failed"),
                    ("unknown", "Outcome unknown"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ["approve", "decline", "suggest", "answer"])),
                name="decision_verdict_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="toolcall",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "status__in",
                        [
                            "rejected",
                            "refused",
                            "allowed",
                            "waiting",
                            "approved",
                            "declined",
                            "answered",
                            "expired",
                            "withdrawn",
                            "executing",
                            "succeeded",
                            "failed",
                            "unknown",
                        ],
                    )
                ),
                name="call_status_known",
            ),
        ),
    ]
