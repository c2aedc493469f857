import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import hitlchat.base.canonical
import hitlchat.gate.models.ids
from hitlchat.base import append_only


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("gate", "0001_initial"),
        ("gate", "0002_asking_again"),
        ("gate", "0003_passed_tests"),
        ("gate", "0004_signed_in_only"),
        ("gate", "0005_who_decides"),
        ("gate", "0006_model_texts"),
        ("gate", "0007_joined_calls"),
        ("gate", "0008_grants"),
        ("gate", "0009_attention"),
        ("gate", "0010_record"),
        ("gate", "0011_history"),
        ("gate", "0012_waiting_in_order"),
        ("gate", "0013_showings"),
        ("gate", "0014_one_index_less"),
        ("gate", "0015_merge_branches"),
        ("gate", "0016_seal_format"),
        ("gate", "0017_decisions_by_means"),
        ("gate", "0018_former_tools"),
        ("gate", "0019_waiting_first"),
        ("gate", "0020_attachments"),
    ]

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Approval",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("prompt", models.TextField()),
                (
                    "disclosure",
                    hitlchat.base.canonical.JSONTextField(
                        help_text="What the card is built from, frozen when the question was asked last."
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                (
                    "same",
                    models.CharField(
                        blank=True, help_text="Equal for identical calls, which are joined.", max_length=64
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ["created_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Attachment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64)),
                ("data", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="Seal",
            fields=[
                ("number", models.PositiveBigIntegerField(primary_key=True, serialize=False)),
                ("first", models.BigIntegerField()),
                ("last", models.BigIntegerField()),
                ("count", models.PositiveIntegerField()),
                (
                    "gaps",
                    hitlchat.base.canonical.JSONTextField(
                        default=list, help_text="Ranges of ids, both ends included, under which there was no event."
                    ),
                ),
                ("late", hitlchat.base.canonical.JSONTextField(default=list, help_text="Ids.")),
                ("watch", models.PositiveBigIntegerField(help_text="From this batch on, gaps could still be filled.")),
                (
                    "root",
                    models.CharField(help_text="Of the Merkle tree (RFC 6962) over the events' hashes.", max_length=64),
                ),
                (
                    "marks",
                    models.TextField(help_text="The first 16 digits of each event's hash: which of them was changed."),
                ),
                ("salt", models.CharField(max_length=64)),
                (
                    "format",
                    models.PositiveSmallIntegerField(
                        help_text="How events are hashed (record/commitment.py). Null: 1.", null=True
                    ),
                ),
                ("previous", models.CharField(blank=True, help_text="The hash of the seal before.", max_length=64)),
                ("sealed_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("hash", models.CharField(max_length=64)),
                ("signature", models.CharField(max_length=128)),
            ],
            options={
                "ordering": ["number"],
            },
        ),
        migrations.CreateModel(
            name="ModelText",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("declined", "Declined"),
                            ("feedback", "Declined with a reason"),
                            ("edited", "Approved with changes"),
                            ("expired", "Not answered in time"),
                            ("refused", "Refused by a rule"),
                        ],
                        max_length=8,
                    ),
                ),
                ("text", models.CharField(max_length=500)),
            ],
            options={
                "ordering": ["outcome"],
            },
        ),
        migrations.CreateModel(
            name="Tool",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z0-9_-]{1,64}\\Z",
                                "Use 1 to 64 letters (a to z), digits, underscores and hyphens.",
                                "name",
                            )
                        ],
                    ),
                ),
                ("title", models.CharField(blank=True, max_length=120)),
                ("description", models.TextField(blank=True)),
                ("input_schema", hitlchat.base.canonical.JSONTextField(default=dict)),
                ("output_schema", hitlchat.base.canonical.JSONTextField(blank=True, null=True)),
                ("source", models.CharField(max_length=32)),
                (
                    "origin",
                    models.CharField(
                        help_text="Where the tool comes from, in words, for the approval card.", max_length=200
                    ),
                ),
                (
                    "hitl_mode",
                    models.CharField(
                        choices=[
                            ("REQUIRED", "Ask every time"),
                            ("CONDITIONAL", "Policies decide"),
                            ("DISABLED", "Never ask"),
                        ],
                        default="REQUIRED",
                        max_length=16,
                    ),
                ),
                ("prompt_template", models.CharField(blank=True, max_length=500)),
                ("condition", models.TextField(blank=True, max_length=2000)),
                ("deadline_seconds", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "signed_in_only",
                    models.BooleanField(default=False, help_text="The word of an MCP client is not enough for it."),
                ),
                ("risk_level", models.PositiveSmallIntegerField(default=5)),
                (
                    "facts",
                    hitlchat.base.canonical.JSONTextField(
                        default=list, help_text="What the tool can reach, one plain sentence each."
                    ),
                ),
                ("published", models.BooleanField(default=False)),
                ("definition_hash", models.CharField(max_length=64)),
                ("example", hitlchat.base.canonical.JSONTextField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="RecordKey",
            fields=[
                (
                    "id",
                    models.CharField(
                        help_text="The fingerprint: SHA-256 of the public key.",
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "public",
                    models.CharField(
                        help_text="The 32 bytes of an Ed25519 key (RFC 8032), in hexadecimal.", max_length=64
                    ),
                ),
                (
                    "number",
                    models.PositiveIntegerField(help_text="Keys are counted; the highest one seals.", unique=True),
                ),
                ("endorsement", models.CharField(blank=True, max_length=128)),
                ("added_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ["number"],
            },
        ),
        migrations.CreateModel(
            name="Showing",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("round", models.PositiveSmallIntegerField()),
                ("means", models.CharField(max_length=16)),
                ("digest", models.CharField(help_text="Of what was shown.", max_length=64)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="ToolCall",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("tool_name", models.CharField(max_length=64)),
                ("source", models.CharField(blank=True, max_length=32)),
                ("definition_hash", models.CharField(blank=True, max_length=64)),
                ("risk_level", models.PositiveSmallIntegerField(default=5)),
                ("arguments", hitlchat.base.canonical.JSONTextField(default=dict)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("rejected", "Rejected"),
                            ("refused", "Refused"),
                            ("allowed", "Allowed"),
                            ("waiting", "Waiting"),
                            ("approved", "Approved"),
                            ("declined", "Declined"),
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
                (
                    "round",
                    models.PositiveSmallIntegerField(
                        default=1,
                        help_text="How often it was asked about. A move counts only in the round it was decided in.",
                    ),
                ),
                (
                    "caller_kind",
                    models.CharField(
                        choices=[
                            ("chat", "the assistant"),
                            ("studio", "a test in the Tool Studio"),
                            ("api", "an API client"),
                            ("mcp", "an MCP client"),
                        ],
                        max_length=8,
                    ),
                ),
                ("conversation_id", models.UUIDField(null=True)),
                ("turn_id", models.UUIDField(null=True)),
                ("position", models.PositiveSmallIntegerField(default=0)),
                ("model_call_id", models.CharField(blank=True, max_length=200)),
                (
                    "rule",
                    models.CharField(
                        blank=True, help_text="The rule under which the verdict was given.", max_length=64
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, help_text="The verdict's reason: why it was asked, not asked, or refused."
                    ),
                ),
                (
                    "grantable",
                    models.BooleanField(
                        default=False,
                        help_text="Whether the tool alone asked, so that a grant may cover the likes of it.",
                    ),
                ),
                ("token_id", models.BigIntegerField(null=True)),
                ("result", hitlchat.base.canonical.JSONTextField(null=True)),
                ("error", hitlchat.base.canonical.JSONTextField(null=True)),
                ("output", models.TextField(blank=True)),
                ("deadline", models.DateTimeField(help_text="Until when a waiting call may be answered.", null=True)),
                (
                    "decided_by",
                    models.CharField(
                        choices=[
                            ("requester", "The person it is called for"),
                            ("approvers", "Everyone with the role approver"),
                            ("group", "The people of one group"),
                        ],
                        default="requester",
                        max_length=16,
                    ),
                ),
                ("decider_group", models.PositiveIntegerField(null=True)),
                ("quorum", models.PositiveSmallIntegerField(default=1)),
                ("not_the_requester", models.BooleanField(default=False)),
                ("escalates_to", models.PositiveIntegerField(null=True)),
                ("escalates_at", models.DateTimeField(null=True)),
                (
                    "oversight_digest",
                    models.CharField(blank=True, help_text="Empty: the tool had no rules of its own.", max_length=64),
                ),
                ("owner", models.CharField(blank=True, max_length=36)),
                ("lease_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("started_at", models.DateTimeField(null=True)),
                ("settled_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["created_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=40)),
                ("means", models.CharField(max_length=16)),
                ("data", hitlchat.base.canonical.JSONTextField(default=dict)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "actor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="Decision",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "round",
                    models.PositiveSmallIntegerField(default=1, help_text="Which of the call's rounds it answers."),
                ),
                ("verdict", models.CharField(choices=[("approve", "Approve"), ("decline", "Decline")], max_length=8)),
                ("means", models.CharField(help_text="How the person was known, as an Actor has it.", max_length=16)),
                (
                    "client",
                    models.CharField(
                        blank=True, help_text="What the MCP client called itself: a claim.", max_length=100
                    ),
                ),
                ("token_name", models.CharField(blank=True, max_length=80)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("edited_arguments", hitlchat.base.canonical.JSONTextField(null=True)),
                ("digest", models.CharField(help_text="What was consented to.", max_length=64)),
                (
                    "first_shown_at",
                    models.DateTimeField(help_text="When this person first had the card before them.", null=True),
                ),
                (
                    "opened",
                    models.BooleanField(
                        help_text="Whether folded text was opened; null: nothing was folded.", null=True
                    ),
                ),
                (
                    "hurried",
                    models.BooleanField(
                        default=False, help_text="Answered faster than the card can plausibly be read."
                    ),
                ),
                ("decided_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "approval",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="decisions", to="gate.approval"
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["round", "decided_at"],
            },
        ),
        migrations.CreateModel(
            name="Drop",
            fields=[
                (
                    "seal",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="drop",
                        serialize=False,
                        to="gate.seal",
                    ),
                ),
                ("dropped_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("signature", models.CharField(max_length=128)),
            ],
            options={
                "ordering": ["seal"],
            },
        ),
        migrations.CreateModel(
            name="FormerTool",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                (
                    "hitl_mode",
                    models.CharField(
                        choices=[
                            ("REQUIRED", "Ask every time"),
                            ("CONDITIONAL", "Policies decide"),
                            ("DISABLED", "Never ask"),
                        ],
                        max_length=16,
                    ),
                ),
                ("condition", models.TextField(blank=True, max_length=2000)),
                ("signed_in_only", models.BooleanField(default=False)),
                ("risk_level", models.PositiveSmallIntegerField()),
                (
                    "rules",
                    hitlchat.base.canonical.JSONTextField(
                        help_text="Who decided, as the columns of Oversight; null: the requester.", null=True
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("hitl_mode__in", ["REQUIRED", "CONDITIONAL", "DISABLED"])),
                        name="former_hitl_mode_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("tool_name", models.CharField(max_length=64)),
                ("source", models.CharField(max_length=32)),
                ("definition_hash", models.CharField(max_length=64)),
                ("risk_level", models.PositiveSmallIntegerField()),
                ("rule", models.CharField(help_text="The rules under which it was given.", max_length=64)),
                (
                    "caller_kind",
                    models.CharField(
                        choices=[
                            ("chat", "the assistant"),
                            ("studio", "a test in the Tool Studio"),
                            ("api", "an API client"),
                            ("mcp", "an MCP client"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "token_id",
                    models.BigIntegerField(
                        help_text="Of an MCP client: only calls with this token are covered.", null=True
                    ),
                ),
                (
                    "arguments_digest",
                    models.CharField(blank=True, help_text="Empty: whatever the arguments.", max_length=64),
                ),
                ("conversation_id", models.UUIDField(help_text="Null: in any conversation.", null=True)),
                ("calls", models.PositiveSmallIntegerField(help_text="How many calls; null: any number.", null=True)),
                ("until", models.DateTimeField(null=True)),
                ("condition", models.CharField(blank=True, max_length=500)),
                ("given_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("seal", models.CharField(max_length=64)),
                ("used", models.PositiveSmallIntegerField(default=0)),
                (
                    "end",
                    models.CharField(blank=True, choices=[("revoked", "Revoked"), ("voided", "Void")], max_length=8),
                ),
                (
                    "why",
                    models.CharField(blank=True, help_text="Why it was ended, to go on a sentence.", max_length=300),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "approval",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="grants", to="gate.approval"
                    ),
                ),
                (
                    "ended_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="grants", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["given_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Oversight",
            fields=[
                (
                    "tool",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="oversight",
                        serialize=False,
                        to="gate.tool",
                    ),
                ),
                (
                    "decided_by",
                    models.CharField(
                        choices=[
                            ("requester", "The person it is called for"),
                            ("approvers", "Everyone with the role approver"),
                            ("group", "The people of one group"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "quorum",
                    models.PositiveSmallIntegerField(default=1, help_text="How many different people have to say yes."),
                ),
                (
                    "not_the_requester",
                    models.BooleanField(default=False, help_text="Four eyes: never the one it is called for."),
                ),
                ("escalate_after_seconds", models.PositiveIntegerField(null=True)),
                ("digest", models.CharField(max_length=64)),
            ],
        ),
        migrations.AddConstraint(
            model_name="tool",
            constraint=models.CheckConstraint(
                condition=models.Q(("hitl_mode__in", ["REQUIRED", "CONDITIONAL", "DISABLED"])),
                name="tool_hitl_mode_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="tool",
            constraint=models.CheckConstraint(
                condition=models.Q(("risk_level__lte", 5)), name="tool_risk_level_0_to_5"
            ),
        ),
        migrations.AddField(
            model_name="modeltext",
            name="tool",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="model_texts", to="gate.tool"
            ),
        ),
        migrations.AddField(
            model_name="grant",
            name="tool",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="grants", to="gate.tool"
            ),
        ),
        migrations.AddField(
            model_name="seal",
            name="key",
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="gate.recordkey"),
        ),
        migrations.AddField(
            model_name="showing",
            name="approval",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="showings", to="gate.approval"
            ),
        ),
        migrations.AddField(
            model_name="showing",
            name="person",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="toolcall",
            name="caller",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="tool_calls", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="toolcall",
            name="grant",
            field=models.ForeignKey(
                help_text="What it runs on unasked.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="covered",
                to="gate.grant",
            ),
        ),
        migrations.AddField(
            model_name="toolcall",
            name="tool",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="calls", to="gate.tool"
            ),
        ),
        migrations.AddField(
            model_name="auditevent",
            name="call",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="events", to="gate.toolcall"
            ),
        ),
        migrations.AddField(
            model_name="attachment",
            name="call",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="attachments", to="gate.toolcall"
            ),
        ),
        migrations.AddField(
            model_name="approval",
            name="call",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="approval", to="gate.toolcall"
            ),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                fields=["decided_at", "person", "verdict", "hurried", "first_shown_at"], name="decision_by_time"
            ),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(condition=models.Q(("hurried", True)), fields=["decided_at"], name="decision_hurried"),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                condition=models.Q(("edited_arguments__isnull", False)),
                fields=["decided_at"],
                name="decision_with_edits",
            ),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["person", "approval"], name="decision_by_person"),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                condition=models.Q(("hurried", True)), fields=["approval"], name="decision_hurried_approval"
            ),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["means", "approval"], name="decision_by_means"),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.UniqueConstraint(
                fields=("approval", "person", "round"), name="one_decision_per_person_and_round"
            ),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ["approve", "decline"])), name="decision_verdict_known"
            ),
        ),
        migrations.AddField(
            model_name="drop",
            name="key",
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="gate.recordkey"),
        ),
        migrations.AddField(
            model_name="oversight",
            name="escalate_to",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="auth.group"
            ),
        ),
        migrations.AddField(
            model_name="oversight",
            name="group",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="auth.group"
            ),
        ),
        migrations.AddConstraint(
            model_name="modeltext",
            constraint=models.UniqueConstraint(fields=("tool", "outcome"), name="one_text_per_tool_and_outcome"),
        ),
        migrations.AddConstraint(
            model_name="modeltext",
            constraint=models.UniqueConstraint(
                condition=models.Q(("tool", None)), fields=("outcome",), name="one_text_per_outcome"
            ),
        ),
        migrations.AddConstraint(
            model_name="modeltext",
            constraint=models.CheckConstraint(
                condition=models.Q(("outcome__in", ["declined", "feedback", "edited", "expired", "refused"])),
                name="text_outcome_known",
            ),
        ),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(condition=models.Q(("end", "")), fields=["person", "tool"], name="grant_standing"),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("calls__isnull", False),
                    ("until__isnull", False),
                    ("conversation_id__isnull", False),
                    _connector="OR",
                ),
                name="grant_is_bounded",
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("calls", None),
                    models.Q(("calls__gte", 1), ("calls__lte", 100), ("used__lte", models.F("calls"))),
                    _connector="OR",
                ),
                name="grant_is_not_overdrawn",
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(("end__in", ["", "revoked", "voided"])), name="grant_end_known"
            ),
        ),
        migrations.AddIndex(
            model_name="seal",
            index=models.Index(fields=["last"], name="seal_by_last"),
        ),
        migrations.AddIndex(
            model_name="seal",
            index=models.Index(fields=["sealed_at"], name="seal_by_time"),
        ),
        migrations.AddConstraint(
            model_name="showing",
            constraint=models.UniqueConstraint(
                fields=("approval", "person", "round"), name="shown_first_once_per_round"
            ),
        ),
        # SQLite takes the newest of indexes that seem equal to it.
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["turn_id", "position"], name="call_by_turn"),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["conversation_id", "created_at"], name="call_by_conversation"),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["caller", "created_at"], name="call_by_caller"),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("status__in", ["allowed", "approved", "executing"])),
                fields=["status", "lease_until"],
                name="call_unfinished",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["settled_at"], name="call_by_settled_at"),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(condition=models.Q(("status", "waiting")), fields=["deadline"], name="call_overdue"),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("caller_kind", "studio"), ("status", "succeeded")),
                fields=["tool", "definition_hash"],
                name="call_passed_test",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("escalates_to__isnull", False)),
                fields=["escalates_to", "status"],
                name="call_by_second_group",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("settled_at__isnull", False)),
                fields=["created_at", "deadline", "status", "tool_name", "risk_level", "settled_at"],
                name="call_over_by_time",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("status", "waiting")), fields=["caller", "deadline"], name="call_waiting"
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                fields=["created_at", "id", "risk_level", "caller_kind", "source", "rule"], name="call_by_time"
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("settled_at__isnull", False)),
                fields=["status", "created_at", "id"],
                name="call_by_outcome",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["tool_name", "created_at", "id"], name="call_by_tool"),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("deadline__isnull", True)), fields=["created_at", "id"], name="call_unasked"
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("decided_by", "requester"), _negated=True),
                fields=["decided_by", "decider_group", "created_at"],
                name="call_decided_by_time",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("status", "waiting"), models.Q(("decided_by", "requester"), _negated=True)),
                fields=["decided_by", "decider_group", "deadline"],
                name="call_by_deciders_waiting",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("escalates_to__isnull", False), ("status", "waiting")),
                fields=["escalates_to", "deadline"],
                name="call_by_second_group_waiting",
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
        migrations.AddConstraint(
            model_name="toolcall",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "waiting"), _negated=True), ("deadline__isnull", False), _connector="OR"
                ),
                name="waiting_call_has_deadline",
            ),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(fields=["at"], name="audit_by_time"),
        ),
        migrations.AddConstraint(
            model_name="attachment",
            constraint=models.UniqueConstraint(fields=("call", "digest"), name="attachment_once_for_a_call"),
        ),
        migrations.AddConstraint(
            model_name="oversight",
            constraint=models.CheckConstraint(
                condition=models.Q(("decided_by__in", ["requester", "approvers", "group"])),
                name="oversight_decided_by_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="oversight",
            constraint=models.CheckConstraint(
                condition=models.Q(("quorum__range", (1, 10))), name="oversight_quorum_1_to_10"
            ),
        ),
        migrations.RunPython(append_only.put_on, append_only.take_off),
    ]
