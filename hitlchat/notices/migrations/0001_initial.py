import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import hitlchat.base.canonical
import hitlchat.gate.models.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("gate", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Installation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("arguments", models.BooleanField(default=False)),
                ("looked_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Wishes",
            fields=[
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="notice_wishes",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("least_risk", models.PositiveSmallIntegerField(default=0)),
                (
                    "tools",
                    hitlchat.base.canonical.JSONTextField(default=list, help_text="Names of tools; none means all."),
                ),
                ("quiet_from", models.TimeField(null=True)),
                ("quiet_until", models.TimeField(null=True)),
                ("time_zone", models.CharField(blank=True, max_length=64)),
                (
                    "pending",
                    models.CharField(blank=True, help_text="An address that is not confirmed yet.", max_length=254),
                ),
                ("code_sent_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Heard",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("event_id", models.BigIntegerField(null=True, unique=True)),
                ("call_id", models.UUIDField(null=True)),
                ("round", models.PositiveSmallIntegerField(null=True)),
                ("at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("call_id", "round"), name="escalation_heard_once")],
            },
        ),
        migrations.CreateModel(
            name="Receiver",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("email", "E-mail"), ("webhook", "Webhook"), ("slack", "Slack")], max_length=8
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                (
                    "place",
                    models.CharField(help_text="The confirmed e-mail address, or a webhook's host.", max_length=260),
                ),
                ("url", models.TextField(blank=True, help_text="Sealed.")),
                ("secret", models.TextField(blank=True, help_text="Sealed: what webhooks are signed with.")),
                (
                    "former_secret",
                    models.TextField(blank=True, help_text="Sealed: the one before, until `former_until`."),
                ),
                ("former_until", models.DateTimeField(null=True)),
                (
                    "allow_private",
                    models.BooleanField(default=False, help_text="Said by an administrator, for this one."),
                ),
                (
                    "tells_decided",
                    models.BooleanField(default=True, help_text="Whether it hears what became of it, too."),
                ),
                ("least_risk", models.PositiveSmallIntegerField(default=0)),
                ("enabled", models.BooleanField(default=True)),
                ("off_why", models.CharField(blank=True, max_length=200)),
                (
                    "since",
                    models.DateTimeField(
                        default=django.utils.timezone.now, help_text="What was asked before is none of its business."
                    ),
                ),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "group",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notice_receivers",
                        to="auth.group",
                    ),
                ),
                (
                    "made_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notice_receivers",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["made_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("waiting", "Waits for an answer"), ("decided", "Has its outcome"), ("test", "Test")],
                        max_length=8,
                    ),
                ),
                ("subject", models.CharField(max_length=200)),
                ("body", models.TextField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("due", "On its way"),
                            ("sent", "Delivered"),
                            ("given_up", "Given up"),
                            ("dropped", "Not sent"),
                        ],
                        default="due",
                        max_length=8,
                    ),
                ),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("next_try_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("owner", models.CharField(blank=True, max_length=36)),
                ("lease_until", models.DateTimeField(null=True)),
                ("tried_at", models.DateTimeField(null=True)),
                ("took_ms", models.PositiveIntegerField(null=True)),
                ("status", models.PositiveSmallIntegerField(help_text="Of the last HTTP answer.", null=True)),
                (
                    "trouble",
                    models.CharField(
                        blank=True, help_text="Of the last attempt, without anything secret.", max_length=300
                    ),
                ),
                ("answer", models.CharField(blank=True, help_text="How the answer to a test began.", max_length=300)),
                ("done_at", models.DateTimeField(null=True)),
                (
                    "receiver",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="notices", to="notices.receiver"
                    ),
                ),
            ],
            options={
                "ordering": ["-made_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="Item",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("round", models.PositiveSmallIntegerField(default=1)),
                (
                    "kind",
                    models.CharField(choices=[("waiting", "Waits"), ("decided", "Has its outcome")], max_length=8),
                ),
                ("outcome", models.CharField(blank=True, max_length=16)),
                ("at", models.DateTimeField(help_text="When it happened.")),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "approval",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="gate.approval"
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "notice",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="notices.notice",
                    ),
                ),
                (
                    "receiver",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="items", to="notices.receiver"
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.AddConstraint(
            model_name="receiver",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["email", "webhook", "slack"])), name="receiver_kind_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="receiver",
            constraint=models.CheckConstraint(
                condition=models.Q(("person", None), ("group", None), _connector="OR"), name="receiver_of_one"
            ),
        ),
        migrations.AddConstraint(
            model_name="receiver",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "email"), _negated=True), ("person__isnull", False), _connector="OR"
                ),
                name="mail_is_personal",
            ),
        ),
        migrations.AddConstraint(
            model_name="receiver",
            constraint=models.UniqueConstraint(
                condition=models.Q(("kind", "email")), fields=("person",), name="one_mail_per_person"
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(condition=models.Q(("state", "due")), fields=["next_try_at"], name="notice_due"),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(fields=["receiver", "-made_at"], name="notice_log"),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(condition=models.Q(("done_at__isnull", False)), fields=["done_at"], name="notice_done"),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["due", "sent", "given_up", "dropped"])), name="notice_state_known"
            ),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(
                condition=models.Q(("notice", None)), fields=["receiver", "kind", "made_at"], name="item_untold"
            ),
        ),
    ]
