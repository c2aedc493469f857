from django.apps import AppConfig


class UpstreamsConfig(AppConfig):
    name = "hitlchat.upstreams"
    label = "upstreams"
