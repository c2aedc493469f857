from django.apps import AppConfig
from django.core.checks import register


class RecordConfig(AppConfig):
    name = "hitlchat.record"
    label = "record"

    def ready(self) -> None:
        from hitlchat.record import keys  # noqa: PLC0415

        register(keys.check, "hitlchat")
