from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "hitlchat.accounts"
    label = "accounts"

    def ready(self) -> None:
        from hitlchat.accounts import roles  # noqa: PLC0415

        post_migrate.connect(roles.after_migrate, dispatch_uid="roles")
