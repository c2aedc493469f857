from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "hitlchat.chat"
    label = "chat"
