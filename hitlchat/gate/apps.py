from django.apps import AppConfig


class GateConfig(AppConfig):
    name = "hitlchat.gate"
    label = "gate"
