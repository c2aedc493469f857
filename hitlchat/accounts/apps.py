from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "hitlchat.accounts"

    def ready(self) -> None:
        from hitlchat.accounts import roles, sign_in  # noqa: PLC0415

        user_logged_in.connect(sign_in.note_sign_in, dispatch_uid="sessions")
        post_migrate.connect(roles.after_migrate, dispatch_uid="roles")
