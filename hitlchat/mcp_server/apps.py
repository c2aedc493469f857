from django.apps import AppConfig


class McpServerConfig(AppConfig):
    name = "hitlchat.mcp_server"
    label = "mcp_server"
