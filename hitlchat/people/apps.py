from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in, user_login_failed


class PeopleConfig(AppConfig):
    name = "hitlchat.people"
    label = "people"

    def ready(self) -> None:
        from hitlchat.people import changing  # noqa: PLC0415

        user_logged_in.connect(changing.note_sign_in, dispatch_uid="sign-ins on record")
        user_login_failed.connect(changing.note_failure, dispatch_uid="failed sign-ins on record")
