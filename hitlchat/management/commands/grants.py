"""`manage.py grants list` and `grants revoke`: what runs without asking, without a browser."""

import json
from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser

from hitlchat.base.visible import see
from hitlchat.gate.actor import CONSOLE
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.models import Grant
from hitlchat.management.console import QuickCommand


class Command(QuickCommand):
    help = "List everyone's grants, or revoke one. On failure, prints the reason and exits with code 1."
    failures = (giving.NoSuchGrant,)

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        shown = actions.add_parser("list", help="list the grants in force")
        shown.add_argument("--user", help="only grants of this username")
        shown.add_argument("--all", action="store_true", help="also grants that have ended")
        shown.add_argument("--json", action="store_true", help="JSON")
        actions.add_parser("revoke", help="revoke a grant at once").add_argument("id", type=UUID)

    def handle(self, *args: Any, action: str, **options: Any) -> str:
        if action == "list":
            return _list(**options)
        return scope.ended_how(giving.revoke(options["id"], CONSOLE))


def _list(*, user: str | None, all: bool, **options: Any) -> str:  # noqa: A002
    rows = Grant.objects.select_related("person").order_by("-given_at")
    rows = rows.filter(person__username=user) if user is not None else rows
    active = set(giving.active(rows).values_list("pk", flat=True))
    found = [
        {
            "id": str(each.pk),
            "person": see(each.person.get_username()).plain,
            "state": giving.state(each, is_active=each.pk in active),
            "scope": see(scope.sentence(each)).plain,
            "used": scope.used(each),
        }
        for each in rows
        if all or each.pk in active
    ]
    if options["json"]:
        return json.dumps(found, indent=2)
    return "\n".join("\t".join(each.values()) for each in found) or "No active grants."
