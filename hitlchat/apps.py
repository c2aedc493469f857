from django.apps import AppConfig


class HitlchatConfig(AppConfig):
    name = "hitlchat"
    label = "hitlchat"
