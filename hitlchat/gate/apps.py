from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class GateConfig(AppConfig):
    name = "hitlchat.gate"
    label = "gate"

    def ready(self) -> None:
        # Identical calls that wait have one answer, whoever gives it wherever.
        from hitlchat.base import append_only  # noqa: PLC0415
        from hitlchat.gate import batch, schema_repair  # noqa: PLC0415

        batch.listen()
        pre_migrate.connect(schema_repair.repair, sender=self, dispatch_uid="schema repair")
        post_migrate.connect(append_only.put_on_again, sender=self, dispatch_uid="bolts")
