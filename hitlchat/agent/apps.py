from django.apps import AppConfig


class AgentConfig(AppConfig):
    name = "hitlchat.agent"
    label = "agent"

    def ready(self) -> None:
        # Connects the wake-up of parked runs to the gate's announcements.
        from hitlchat.agent import runner  # noqa: PLC0415

        runner.listen()
