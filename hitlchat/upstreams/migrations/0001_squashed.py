import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import hitlchat.base.canonical
import hitlchat.gate.models.ids


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("upstreams", "0001_initial"),
        ("upstreams", "0002_question"),
        ("upstreams", "0003_sign_in"),
        ("upstreams", "0004_floors_take_no_credit"),
        ("upstreams", "0005_older_protocol"),
    ]

    dependencies = [
        ("gate", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="UpstreamServer",
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
                                "\\A[A-Za-z0-9._-]{1,64}\\Z",
                                "Use 1 to 64 letters (a to z), digits, dots, underscores and hyphens.",
                                "name",
                            )
                        ],
                    ),
                ),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("http", "Streamable HTTP"),
                            ("stdio", "a program on this machine"),
                            ("sse", "HTTP with server-sent events (older)"),
                        ],
                        max_length=8,
                    ),
                ),
                ("url", models.CharField(blank=True, max_length=2000)),
                (
                    "headers",
                    hitlchat.base.canonical.JSONTextField(
                        default=list, help_text="As values.py keeps them; what is secret is sealed."
                    ),
                ),
                ("command", models.CharField(blank=True, max_length=1000)),
                ("args", hitlchat.base.canonical.JSONTextField(default=list)),
                ("env", hitlchat.base.canonical.JSONTextField(default=list, help_text="Like headers.")),
                (
                    "allow_private",
                    models.BooleanField(default=False, help_text="Its name may lead to a private address."),
                ),
                ("call_seconds", models.PositiveIntegerField(default=60)),
                (
                    "older_protocol",
                    models.BooleanField(default=False, help_text="Its newest one is broken: 2025-11-25 and before."),
                ),
                ("enabled", models.BooleanField(default=True)),
                (
                    "trust",
                    models.CharField(
                        choices=[
                            ("vendor", "in the gallery, from the vendor"),
                            ("community", "in the gallery, from a community"),
                            ("known-host", "typed in, on a host of the gallery"),
                            ("unknown", "nobody vouches for it"),
                        ],
                        default="unknown",
                        max_length=12,
                    ),
                ),
                ("gallery_entry", models.CharField(blank=True, max_length=64)),
                ("docs_url", models.CharField(blank=True, max_length=2000)),
                ("docs_adequate", models.BooleanField(default=True)),
                (
                    "revision",
                    models.PositiveIntegerField(default=1, help_text="Counts the changes of how it is reached."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "Not connected yet"),
                            ("connecting", "Connecting"),
                            ("up", "Connected"),
                            ("down", "Not reachable"),
                            ("sign-in", "Waits for someone to sign in"),
                            ("unusable", "Not set up"),
                            ("disabled", "Disabled"),
                        ],
                        default="new",
                        max_length=12,
                    ),
                ),
                ("reason", models.TextField(blank=True, help_text="Why it is not up, secrets masked.")),
                ("last_error", models.TextField(blank=True)),
                ("last_error_at", models.DateTimeField(null=True)),
                ("latency_ms", models.FloatField(null=True)),
                ("protocol_version", models.CharField(blank=True, max_length=40)),
                ("told_name", models.CharField(blank=True, help_text="What it calls itself.", max_length=200)),
                ("told_version", models.CharField(blank=True, max_length=200)),
                ("notes", hitlchat.base.canonical.JSONTextField(default=list)),
                ("reported_at", models.DateTimeField(null=True)),
                ("reported_by", models.CharField(blank=True, max_length=36)),
                ("present", models.BooleanField(default=False)),
                ("tool_count", models.PositiveIntegerField(null=True)),
                ("listing_note", models.TextField(blank=True, help_text="What of its list was left out.")),
                ("listed_at", models.DateTimeField(null=True)),
                (
                    "writes",
                    models.BooleanField(default=True, help_text="One of its tools says that it changes something."),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Exposure",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                (
                    "mode",
                    models.CharField(
                        choices=[("both", "Both"), ("own", "Own tools only"), ("composed", "Composed tools only")],
                        default="both",
                        max_length=8,
                    ),
                ),
                (
                    "ceiling",
                    models.PositiveSmallIntegerField(
                        default=5, help_text="No composed tool of a higher risk is offered."
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="one_exposure"),
                    models.CheckConstraint(
                        condition=models.Q(("ceiling__gte", 1), ("ceiling__lte", 5)), name="ceiling_1_to_5"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("mode__in", ["both", "own", "composed"])), name="exposure_mode_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ComposedTool",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                (
                    "exposed",
                    models.BooleanField(
                        default=False, help_text="Someone wants it exposed; whether it is, `state` says."
                    ),
                ),
                ("description", models.TextField(blank=True, help_text="Instead of the upstream's own.")),
                ("listed", models.BooleanField(default=True, help_text="It was in the server's last list.")),
                ("held", models.BooleanField(default=False, help_text="It changed, and nobody has accepted that yet.")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "New: not exposed yet"),
                            ("hidden", "Not exposed"),
                            ("exposed", "Exposed"),
                            ("withheld", "Withheld"),
                            ("gone", "No longer offered"),
                            ("unfit", "Cannot be offered"),
                        ],
                        default="new",
                        max_length=8,
                    ),
                ),
                ("reason", models.TextField(blank=True, help_text="Why it is in this state, where that is not plain.")),
                ("pinned", hitlchat.base.canonical.JSONTextField(null=True)),
                ("pinned_digest", models.CharField(blank=True, max_length=64)),
                ("pinned_profile", models.CharField(blank=True, max_length=40)),
                ("accepted_at", models.DateTimeField(null=True)),
                ("seen", hitlchat.base.canonical.JSONTextField()),
                ("seen_digest", models.CharField(max_length=64)),
                ("seen_profile", models.CharField(max_length=40)),
                ("seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("first_seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("problems", hitlchat.base.canonical.JSONTextField(default=list)),
                ("warnings", hitlchat.base.canonical.JSONTextField(default=list)),
                ("risk_inherent", models.PositiveSmallIntegerField(default=5)),
                ("risk_effective", models.PositiveSmallIntegerField(default=5)),
                ("risk_floor", models.CharField(blank=True, max_length=40)),
                ("risk_reasons", hitlchat.base.canonical.JSONTextField(default=list)),
                (
                    "accepted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tool",
                    models.OneToOneField(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="composed", to="gate.tool"
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tools", to="upstreams.upstreamserver"
                    ),
                ),
            ],
            options={
                "ordering": ["server", "name"],
            },
        ),
        migrations.CreateModel(
            name="SignInAttempt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("state_hash", models.CharField(max_length=64, unique=True)),
                ("session_hash", models.CharField(max_length=64)),
                ("plan", models.TextField(help_text="Sealed: who gives tokens for the code, to which client.")),
                ("expires_at", models.DateTimeField()),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="upstreams.upstreamserver"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ToolEvent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("server_name", models.CharField(max_length=64)),
                ("tool_name", models.CharField(max_length=128)),
                ("name", models.CharField(max_length=40)),
                ("means", models.CharField(max_length=16)),
                ("digest", models.CharField(blank=True, max_length=64)),
                (
                    "record",
                    hitlchat.base.canonical.JSONTextField(
                        help_text="The tool's record from then on, where that is what changed.", null=True
                    ),
                ),
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
                (
                    "tool",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="events",
                        to="upstreams.composedtool",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="UpstreamQuestion",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("server_name", models.CharField(max_length=64)),
                ("message", models.TextField(blank=True)),
                ("schema", hitlchat.base.canonical.JSONTextField(default=dict)),
                ("url", models.TextField(blank=True, help_text="The address to be opened, instead of a form.")),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("deadline", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Waits for an answer"),
                            ("answered", "Answered"),
                            ("declined", "Not answered"),
                            ("expired", "Nobody answered in time"),
                            ("gone", "Taken back"),
                        ],
                        default="open",
                        max_length=8,
                    ),
                ),
                ("note", models.TextField(blank=True, help_text="Why nobody was asked, in words.")),
                ("means", models.CharField(blank=True, max_length=16)),
                ("answered_at", models.DateTimeField(null=True)),
                (
                    "fields",
                    hitlchat.base.canonical.JSONTextField(
                        default=list, help_text="Which fields the answer had, by name."
                    ),
                ),
                ("sealed", models.TextField(blank=True)),
                (
                    "answered_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "call",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="questions", to="gate.toolcall"
                    ),
                ),
            ],
            options={
                "ordering": ["asked_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="SignIn",
            fields=[
                (
                    "server",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="sign_in",
                        serialize=False,
                        to="upstreams.upstreamserver",
                    ),
                ),
                (
                    "registration",
                    models.CharField(
                        choices=[
                            ("dynamic", "registered by itself"),
                            ("document", "named by the address of its description"),
                            ("typed", "typed in by an administrator"),
                        ],
                        max_length=8,
                    ),
                ),
                ("issuer", models.TextField()),
                ("client_id", models.TextField()),
                ("client_secret", models.TextField(blank=True, help_text="Sealed.")),
                ("client_expires_at", models.DateTimeField(null=True)),
                ("auth_method", models.CharField(max_length=32)),
                ("redirect_uri", models.TextField()),
                (
                    "wanted_scopes",
                    models.TextField(
                        blank=True, help_text="Those an administrator wants, instead of the server's own."
                    ),
                ),
                ("token_endpoint", models.TextField()),
                ("revocation_endpoint", models.TextField(blank=True)),
                ("resource", models.TextField()),
                ("mark", models.CharField(blank=True, max_length=36)),
                ("origin", models.TextField(blank=True, help_text="Where the tokens may be sent.")),
                ("scopes_asked", models.TextField(blank=True)),
                ("scopes_granted", models.TextField(blank=True)),
                ("signed_in_at", models.DateTimeField(null=True)),
                ("tokens", models.TextField(blank=True, help_text="Sealed.")),
                ("renews", models.BooleanField(default=False, help_text="There is something to get newer ones with.")),
                ("generation", models.PositiveIntegerField(default=0)),
                ("expires_at", models.DateTimeField(null=True)),
                ("renewed_at", models.DateTimeField(null=True)),
                ("renewing_by", models.CharField(blank=True, max_length=36)),
                ("renewing_until", models.DateTimeField(null=True)),
                (
                    "problem",
                    models.TextField(
                        blank=True, help_text="Why the tokens are of no use any more; empty while they are."
                    ),
                ),
                ("lacking", models.TextField(blank=True, help_text="Rights for want of which a call was refused.")),
                (
                    "last_error",
                    models.TextField(blank=True, help_text="What came of the last attempt to sign in, if it failed."),
                ),
                ("last_error_at", models.DateTimeField(null=True)),
                (
                    "signed_in_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="upstreamserver",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.Lower("name"), name="server_name_in_any_case"
            ),
        ),
        migrations.AddConstraint(
            model_name="upstreamserver",
            constraint=models.CheckConstraint(
                condition=models.Q(("transport__in", ["http", "stdio", "sse"])), name="server_transport_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="upstreamserver",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["new", "connecting", "up", "down", "sign-in", "unusable", "disabled"])
                ),
                name="server_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="upstreamserver",
            constraint=models.CheckConstraint(
                condition=models.Q(("trust__in", ["vendor", "community", "known-host", "unknown"])),
                name="server_trust_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="composedtool",
            constraint=models.UniqueConstraint(fields=("server", "name"), name="one_tool_per_server_and_name"),
        ),
        migrations.AddConstraint(
            model_name="composedtool",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["new", "hidden", "exposed", "withheld", "gone", "unfit"])),
                name="composed_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="composedtool",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("exposed", False),
                    models.Q(("tool__isnull", False), models.Q(("pinned_digest", ""), _negated=True)),
                    _connector="OR",
                ),
                name="exposed_is_accepted",
            ),
        ),
        migrations.AddIndex(
            model_name="upstreamquestion",
            index=models.Index(condition=models.Q(("state", "open")), fields=["asked_at"], name="question_open"),
        ),
        migrations.AddConstraint(
            model_name="upstreamquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["open", "answered", "declined", "expired", "gone"])),
                name="question_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="upstreamquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(("sealed", ""), ("state", "answered"), _connector="OR"),
                name="only_answers_are_sealed",
            ),
        ),
        migrations.AddConstraint(
            model_name="signin",
            constraint=models.CheckConstraint(
                condition=models.Q(("registration__in", ["dynamic", "document", "typed"])),
                name="sign_in_registration_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="signin",
            constraint=models.CheckConstraint(
                condition=models.Q(("tokens", ""), models.Q(("mark", ""), _negated=True), _connector="OR"),
                name="tokens_of_a_sign_in",
            ),
        ),
    ]
