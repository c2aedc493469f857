from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "hitlchat.approvals"
    label = "approvals"

    def ready(self) -> None:
        # Connects open pages to what begins and ceases to wait.
        from hitlchat.approvals.inbox import socket  # noqa: PLC0415

        socket.listen()
