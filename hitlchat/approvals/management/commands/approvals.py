"""`manage.py approvals extend`: more time for a question, without a browser."""

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitlchat.gate import decide, extending
from hitlchat.gate.actor import Actor


class Command(BaseCommand):
    help = "Questions that wait, at the console. Fails with exit code 1 and the reason."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_subparsers(dest="what", required=True)
        extend = what.add_parser("extend", help="put a deadline off by five minutes, in its last minute")
        extend.add_argument("approval", type=UUID)
        extend.add_argument("--user", required=True, help="the username of the person who does it")

    def handle(self, *args: Any, **options: Any) -> str:
        return str(getattr(self, f"_{options['what']}")(**options))

    def _extend(self, *, approval: UUID, user: str, **_: Any) -> str:
        try:
            call = extending.extend(approval, Actor(_person(user), "console"))
        except (decide.NoSuchApproval, decide.AlreadySettled, extending.NotNow) as error:
            raise CommandError(str(error)) from error
        return f"It can be answered until {call.deadline:%Y-%m-%d %H:%M:%S %Z}."


def _person(name: str) -> int:
    found = User.objects.filter(username=name, is_active=True).values_list("pk", flat=True).first()
    if found is None:
        raise CommandError(f"There is nobody named {name!r} who may sign in.")
    return int(found)
