from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "hitlchat.notices"
    label = "notices"
