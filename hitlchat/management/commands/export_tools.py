from typing import Any

from django.core.management.base import CommandError, CommandParser

from hitlchat.gate.models import Tool
from hitlchat.management.console import ConsoleCommand
from tools_studio import exchange
from tools_studio.spec import SOURCE


class Command(ConsoleCommand):
    help = "Print authored tools as a file for import_tools: with their code, rules and tests, without secrets."
    failures = (exchange.TooMuch,)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("names", nargs="*", metavar="NAME", help="tools to export; without a name, all of them")

    def handle(self, *args: Any, **options: Any) -> None:
        names: list[str] = options["names"]
        tools = Tool.objects.filter(source=SOURCE).select_related("script")
        chosen = tools.filter(name__in=names) if names else tools
        if missing := sorted({*names} - {each.name for each in chosen}):
            raise CommandError(f"There is no authored tool named {missing[0]!r}.")
        self.stdout.write(exchange.text(chosen), ending="")
