from django.apps import AppConfig
from django.core.checks import register

from hitlchat.checks import check_settings


class HitlchatConfig(AppConfig):
    name = "hitlchat"

    def ready(self) -> None:
        from hitlchat import subscribers  # noqa: PLC0415
        from hitlchat.record import keys  # noqa: PLC0415

        subscribers.subscribe()
        register(check_settings, "hitlchat")
        register(keys.check, "hitlchat")
