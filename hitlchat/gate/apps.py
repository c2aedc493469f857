from django.apps import AppConfig
from django.db.models.signals import post_migrate


class GateConfig(AppConfig):
    name = "hitlchat.gate"

    def ready(self) -> None:
        from hitlchat.base import append_only  # noqa: PLC0415

        post_migrate.connect(append_only.put_on_again, sender=self, dispatch_uid="bolts")
