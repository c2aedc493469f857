from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_token_name_and_use"),
        ("mcp_server", "0001_initial"),
    ]

    operations = [
        migrations.RemoveField(model_name="mcptoken", name="name"),
        migrations.RemoveField(model_name="mcptoken", name="expires_at"),
        migrations.RemoveField(model_name="mcptoken", name="last_used_at"),
    ]
