import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import hitlchat.gate.models


class Migration(migrations.Migration):
    dependencies = [
        ("upstreams", "0002_question"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SignInAttempt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=hitlchat.gate.models.new_id, editable=False, primary_key=True, serialize=False
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
                (
                    "renews",
                    models.BooleanField(default=False, help_text="There is something to get newer ones with."),
                ),
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
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("registration__in", ["dynamic", "document", "typed"])),
                        name="sign_in_registration_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("tokens", ""), models.Q(("mark", ""), _negated=True), _connector="OR"),
                        name="tokens_of_a_sign_in",
                    ),
                ],
            },
        ),
    ]
