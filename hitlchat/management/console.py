"""What commands at the console have in common: they change nothing under another configuration than the server's."""

from typing import Any, ClassVar

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitlchat import running


class ConsoleCommand(BaseCommand):
    """A command that refuses while a server with another configuration runs on the same database.

    `failures`: errors that say by themselves why nothing was done.
    """

    failures: ClassVar[tuple[type[Exception], ...]] = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        words = "run although a server with another configuration runs on the same database"
        parser.add_argument("--anyway", action="store_true", help=words)
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        anyway = options.pop("anyway", False)
        if not anyway and self.concerns_servers(**options) and (found := [*running.differences()]):
            advice = (
                f"If {settings.CONFIGURATION.file} was edited, restart the server (a killed one counts as running "
                f"for {settings.LEASE_SECONDS} seconds). Else run this command with the server's settings. To exchange "
                "servers one by one for some with other settings, pass --anyway."
            )
            words = "Nothing was changed: a running server has another configuration."
            raise CommandError("\n  ".join((words, *found)) + f"\n{advice}")
        try:
            return super().execute(*args, **options)
        except self.failures as error:
            raise CommandError(str(error)) from error

    def concerns_servers(self, **_options: Any) -> bool:
        """Return whether what is asked for depends on the configuration of servers."""
        return True


class QuickCommand(ConsoleCommand):
    """One that begins at once: checks other than our own import every page."""

    requires_system_checks = ("hitlchat",)
