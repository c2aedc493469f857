from django.apps import AppConfig, apps
from django.core.checks import register
from django.db.models.signals import post_migrate


class ProjectToolsConfig(AppConfig):
    name = "hitlchat.project_tools"

    def ready(self) -> None:
        from hitlchat.project_tools import catalogue, source  # noqa: PLC0415 - models are there only now

        register(catalogue.check_project_tools, "hitlchat")
        post_migrate.connect(
            source.after_migrate, sender=apps.get_app_config("gate"), dispatch_uid="hitlchat.project_tools"
        )
        catalogue.load()
