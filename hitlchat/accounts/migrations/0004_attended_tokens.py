"""Marks of MCP tokens at whose client a person sits: none of those that exist has one."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_roles_and_invitations"),
    ]

    operations = [
        migrations.AddField(
            model_name="token",
            name="attended",
            field=models.BooleanField(
                default=False,
                help_text="A person sits at its MCP client, says an administrator: its word may count as a yes.",
            ),
        ),
        migrations.AddConstraint(
            model_name="token",
            constraint=models.CheckConstraint(
                condition=Q(("attended", False), ("kind", "mcp"), _connector="OR"), name="only_mcp_is_attended"
            ),
        ),
    ]
