from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitlchat.accounts.models import Token, TokenKind


class Command(BaseCommand):
    help = "Print a new personal token, once, and nothing else."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user name it acts for")
        parser.add_argument("--kind", choices=TokenKind.values, required=True)

    def handle(self, *args: Any, **options: Any) -> str:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user named {options['user']!r}.")
        return Token.make(user, TokenKind(options["kind"]))
