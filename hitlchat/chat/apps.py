from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "hitlchat.chat"
    label = "chat"

    def ready(self) -> None:
        # Connects open pages to what upstream servers ask and tell.
        from hitlchat.chat import following  # noqa: PLC0415

        following.listen()
