"""People and roles on the command line, for operators without a browser."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from hitlchat.accounts.models import Role
from hitlchat.base.problems import Conflict
from hitlchat.base.visible import see
from hitlchat.gate.actor import CONSOLE
from hitlchat.management.console import QuickCommand
from hitlchat.people import membership

Options = dict[str, Any]


class Command(QuickCommand):
    help = (
        "List, invite and deactivate people, and change their roles. On failure, prints the reason and exits "
        "with code 1."
    )
    failures = (Conflict,)

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_subparsers(dest="what", required=True)
        what.add_parser("list", help="list everyone: name, role, status, last sign-in, number of tokens")
        invite = what.add_parser("invite", help="create an invitation and print the path of its link, once")
        invite.add_argument("role", choices=Role.values)
        invite.add_argument("--note", default="", help="who the invitation is for")
        role = what.add_parser("role", help="change a person's role")
        role.add_argument("user")
        role.add_argument("role", choices=Role.values)
        for name, help_text in (
            ("deactivate", "deactivate a person and sign them out everywhere"),
            ("reactivate", "let a person sign in again"),
        ):
            what.add_parser(name, help=help_text).add_argument("user")

    def handle(self, *args: Any, **options: Any) -> str:
        return str(getattr(self, f"_{options['what']}")(options))

    def _list(self, options: Options) -> str:
        lines = []
        for user in membership.everyone():
            fields = [
                see(user.get_username()).plain,
                user.role,
                "active" if user.is_active else "deactivated",
                f"last sign-in {user.last_login:%Y-%m-%d}" if user.last_login else "never signed in",
                f"tokens: {user.token_count}",
            ]
            lines.append("\t".join(fields))
        return "\n".join(lines) or "There are no people yet."

    def _invite(self, options: Options) -> str:
        if len(options["note"]) > 120:
            raise CommandError("--note: at most 120 characters.")
        _, secret = membership.invite(Role(options["role"]), options["note"], CONSOLE)
        return f"/join/{secret}"

    def _role(self, options: Options) -> str:
        user = membership.change_role(_named(options), Role(options["role"]), CONSOLE)
        return f"{user.get_username()} is {options['role']}."

    def _deactivate(self, options: Options) -> str:
        user = membership.deactivate(_named(options), CONSOLE)
        return f"{user.get_username()} is deactivated and signed out everywhere."

    def _reactivate(self, options: Options) -> str:
        user = membership.reactivate(_named(options), CONSOLE)
        return f"{user.get_username()} can sign in again. Tokens stay revoked."


def _named(options: Options) -> int:
    found = User.objects.filter(username=options["user"]).values_list("pk", flat=True).first()
    if found is None:
        raise CommandError(f"There is no user named {options['user']!r}.")
    return int(found)
