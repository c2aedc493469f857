from django.apps import AppConfig


class ToolsStudioConfig(AppConfig):
    name = "tools_studio"
    label = "tools_studio"
