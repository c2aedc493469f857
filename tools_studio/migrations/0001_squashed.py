import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import hitlchat.base.canonical


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("tools_studio", "0001_initial"),
        ("tools_studio", "0002_studio_in_full"),
        ("tools_studio", "0003_category_labels"),
    ]

    dependencies = [
        ("gate", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Shipment",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("installed_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="Script",
            fields=[
                (
                    "tool",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="script",
                        serialize=False,
                        to="gate.tool",
                    ),
                ),
                ("code", models.TextField()),
                (
                    "group",
                    models.CharField(
                        default="tools",
                        max_length=64,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z0-9_-]{1,64}\\Z",
                                "Use 1 to 64 letters (a to z), digits, underscores and hyphens.",
                                "name",
                            )
                        ],
                    ),
                ),
                ("description", models.TextField(blank=True, help_text="Empty: the docstring of run().")),
                (
                    "category",
                    models.CharField(
                        choices=[
                            ("Text", "Text"),
                            ("Data", "Data"),
                            ("Date/Time", "Date/Time"),
                            ("Math", "Math"),
                            ("Encoding", "Encoding"),
                            ("Crypto", "Crypto"),
                            ("Security", "Security"),
                            ("Files", "Files"),
                            ("Web", "Web"),
                            ("Productivity", "Productivity"),
                            ("Messaging", "Messaging"),
                            ("AI APIs", "AI APIs"),
                            ("Custom", "Custom"),
                        ],
                        default="Custom",
                        max_length=16,
                    ),
                ),
                ("tags", hitlchat.base.canonical.JSONTextField(default=list)),
                ("capabilities", hitlchat.base.canonical.JSONTextField(default=dict)),
                ("version", models.PositiveIntegerField(default=1)),
                ("saved_at", models.DateTimeField(auto_now=True)),
                (
                    "shipped",
                    models.CharField(
                        blank=True,
                        help_text="The recorded hash of the library's tool that this is, unchanged.",
                        max_length=64,
                    ),
                ),
                ("revoked", models.TextField(blank=True, help_text="Why this tool must not run; empty when it may.")),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ScriptVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("draft", hitlchat.base.canonical.JSONTextField(help_text="The tool as its export has it.")),
                ("definition_hash", models.CharField(max_length=64)),
                ("saved_at", models.DateTimeField(auto_now_add=True)),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "script",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="versions", to="tools_studio.script"
                    ),
                ),
            ],
            options={
                "ordering": ["-number"],
            },
        ),
        migrations.CreateModel(
            name="StoredVariable",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=64)),
                ("secret", models.BooleanField(default=False)),
                ("value", models.TextField(blank=True)),
                ("fingerprint", models.CharField(blank=True, max_length=64)),
                (
                    "script",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="variables", to="tools_studio.script"
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="StoreEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("group", models.CharField(max_length=64)),
                ("key", models.CharField(max_length=200)),
                ("value", hitlchat.base.canonical.JSONTextField(null=True)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("group", "key"), name="one_value_per_key")],
            },
        ),
        migrations.CreateModel(
            name="TestCase",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("arguments", hitlchat.base.canonical.JSONTextField(default=dict)),
                (
                    "expectation",
                    models.CharField(
                        choices=[
                            ("anything", "runs without an error"),
                            ("equals", "the result is exactly"),
                            ("contains", "the result contains"),
                            ("fails", "it fails, saying"),
                        ],
                        default="anything",
                        max_length=8,
                    ),
                ),
                ("expected", hitlchat.base.canonical.JSONTextField(blank=True, null=True)),
                (
                    "last_call",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="gate.toolcall"
                    ),
                ),
                (
                    "script",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="cases", to="tools_studio.script"
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.AddConstraint(
            model_name="script",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "category__in",
                        [
                            "Text",
                            "Data",
                            "Date/Time",
                            "Math",
                            "Encoding",
                            "Crypto",
                            "Security",
                            "Files",
                            "Web",
                            "Productivity",
                            "Messaging",
                            "AI APIs",
                            "Custom",
                        ],
                    )
                ),
                name="script_category_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="scriptversion",
            constraint=models.UniqueConstraint(fields=("script", "number"), name="one_version_per_number"),
        ),
        migrations.AddConstraint(
            model_name="storedvariable",
            constraint=models.UniqueConstraint(fields=("script", "name"), name="one_variable_per_name"),
        ),
        migrations.AddConstraint(
            model_name="testcase",
            constraint=models.UniqueConstraint(fields=("script", "name"), name="one_case_per_name"),
        ),
        migrations.AddConstraint(
            model_name="testcase",
            constraint=models.CheckConstraint(
                condition=models.Q(("expectation__in", ["anything", "equals", "contains", "fails"])),
                name="case_expectation_known",
            ),
        ),
    ]
