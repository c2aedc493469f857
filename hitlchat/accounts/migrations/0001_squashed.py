import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("accounts", "0001_initial"),
        ("accounts", "0002_token_name_and_use"),
        ("accounts", "0003_roles_and_invitations"),
        ("accounts", "0004_attended_tokens"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SetupLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("member", "Member"),
                            ("approver", "Approver"),
                            ("author", "Author"),
                            ("administrator", "Administrator"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "note",
                    models.CharField(blank=True, help_text="For whom it is, as the inviter wrote it.", max_length=120),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                (
                    "invited_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["expires_at"],
                "permissions": [("decide_for_others", "May be let decide calls of other people")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["member", "approver", "author", "administrator"])),
                        name="invitation_role_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Token",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("api", "API: acts as you, cannot decide"),
                            ("approver", "Approver: may also decide what you may decide"),
                            ("mcp", "MCP: for /mcp only"),
                        ],
                        max_length=8,
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("name", models.CharField(blank=True, max_length=80)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(editable=False, null=True)),
                (
                    "attended",
                    models.BooleanField(
                        default=False,
                        help_text="A person sits at its MCP client, says an administrator: its word may count as a yes.",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tokens", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("attended", False), ("kind", "mcp"), _connector="OR"),
                        name="only_mcp_is_attended",
                    )
                ],
            },
        ),
    ]
