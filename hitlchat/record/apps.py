from django.apps import AppConfig
from django.core.checks import register


class RecordConfig(AppConfig):
    name = "hitlchat.record"
    label = "record"

    def ready(self) -> None:
        from hitlchat.record import signing  # noqa: PLC0415

        register(signing.check, "hitlchat")
