from django.apps import AppConfig


class AgentConfig(AppConfig):
    name = "hitlchat.agent"
    label = "agent"
