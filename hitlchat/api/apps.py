from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "hitlchat.api"
    label = "api"
