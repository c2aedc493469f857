import sys
from pathlib import Path
from typing import Any, get_args

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from hitlchat.accounts.roles import may_author
from hitlchat.base.visible import see
from hitlchat.gate.actor import Actor
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.management.console import ConsoleCommand
from tools_studio import exchange, importing
from tools_studio.exchange import BadFile
from tools_studio.importing import Conflict, Step

DONE = {"new": "new", "rename": "new, as", "replace": "replaced", "same": "the same as here", "leave": "left alone"}


class Command(ConsoleCommand):
    help = "Import a file of tools, all or nothing. It publishes no tool and never makes one ask less often."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a file that export_tools wrote; - for the standard input")
        parser.add_argument(
            "--user", required=True, metavar="NAME", help="the user who imports; must be allowed to write tools"
        )
        parser.add_argument(
            "--on-conflict", choices=get_args(Conflict), default="leave",
            help="how to treat a tool with the same name: leave it alone (default), replace it with a new "
                 "version, or add the new one under another name",
        )  # fmt: skip
        parser.add_argument(
            "--confirm-lowering",
            action="store_true",
            help="import even if a tool would run with less oversight, or approvers would read different texts",
        )
        parser.add_argument("--dry-run", action="store_true", help="only print what would happen")

    def handle(self, *args: Any, **options: Any) -> None:
        author = User.objects.filter(username=options["user"]).first()
        if author is None or not may_author(author):
            raise CommandError(f"There is no user named {options['user']!r} who may write tools.")
        actor, on_conflict = Actor(author.pk, "console"), options["on_conflict"]
        try:
            entries = exchange.read(_content(options["file"]))
            if options["dry_run"]:
                plan = importing.plan(entries, on_conflict)
            else:
                plan = importing.carry_out(entries, on_conflict, actor, confirmed=options["confirm_lowering"])
        except BadFile as error:
            raise CommandError(f"Nothing was imported.\n{see(str(error)).plain}") from error
        except NotConfirmed as error:
            words = f"Nothing was imported. {see(str(error)).plain}\nIf that is intended, add --confirm-lowering."
            raise CommandError(words) from error
        for step in plan.steps:
            self.stdout.write(_line(step))
            for words in (*step.missing.values(), *step.notes):
                self.stdout.write(f"  {see(words).plain}")
        self.stdout.write(f"{plan.words}.{' Nothing was written.' if options['dry_run'] else ''}")


def _line(step: Step) -> str:
    name = step.entry.draft.name
    done = f"{DONE[step.action]} {step.name}" if step.action == "rename" else DONE[step.action]
    rule = f", L{step.sound.risk_level}, {step.mode.label.lower()}" if step.writes else ""
    raised = " (stricter than in the file)" if step.raised_from else ""
    return f"{name}: {done}{rule}{raised}"


def _content(file: str) -> bytes:
    """Return at most as much as shows that it is too large."""
    most = exchange.MOST_BYTES + 1
    try:
        if file == "-":
            return sys.stdin.buffer.read(most)
        with Path(file).open("rb") as opened:
            return opened.read(most)
    except OSError as error:
        raise CommandError(f"{file!r} cannot be read: {error.strerror}.") from error
