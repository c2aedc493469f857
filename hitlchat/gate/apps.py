from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class GateConfig(AppConfig):
    name = "hitlchat.gate"
    label = "gate"

    def ready(self) -> None:
        from hitlchat.base import append_only  # noqa: PLC0415
        from hitlchat.gate import schema_repair  # noqa: PLC0415

        pre_migrate.connect(schema_repair.repair, sender=self, dispatch_uid="schema repair")
        post_migrate.connect(append_only.put_on_again, sender=self, dispatch_uid="bolts")
