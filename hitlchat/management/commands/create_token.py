"""Personal tokens on the command line: one is made, and its text is all that is printed; or listed, or revoked."""

from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from hitlchat.accounts.models import TokenKind
from hitlchat.base.visible import see
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Tool
from hitlchat.management.console import QuickCommand
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.models import WithoutElicitation
from hitlchat.mcp_server.tokens import OwnToken

LONGEST_DAYS = 3650
# Which options say what a token for /mcp may do, and the columns they are.
LIMITS = {"tools": "--tool", "ceiling": "--ceiling", "without_elicitation": "--without-elicitation"}


class Command(QuickCommand):
    help = "Create a personal token and print it, once; or list, trust or revoke a user's tokens."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user that the token acts for")
        act = parser.add_mutually_exclusive_group(required=True)
        act.add_argument("--kind", choices=TokenKind.values, help="create a token of this kind")
        act.add_argument("--list", action="store_true", help="list this user's tokens, without their text")
        act.add_argument("--revoke", type=int, metavar="NUMBER", help="revoke this token; --list prints the numbers")
        act.add_argument("--mark", type=int, metavar="NUMBER", help="trust the client of this token (with --by)")
        act.add_argument("--unmark", type=int, metavar="NUMBER", help="stop trusting that client (with --by)")
        parser.add_argument("--by", metavar="ADMINISTRATOR", help="the administrator who trusts the client")
        parser.add_argument("--name", default="", help="to tell your tokens apart")
        parser.add_argument(
            "--expires", type=_days, metavar="DAYS", help="valid for this many days; else until revoked"
        )
        mcp = parser.add_argument_group("for --kind mcp")
        mcp.add_argument(
            "--tool", action="append", dest="tools", metavar="NAME", help="only this tool (can be repeated)"
        )
        mcp.add_argument("--ceiling", type=int, choices=range(6), help="only tools up to this risk (default: 5)")
        mcp.add_argument(
            "--without-elicitation",
            choices=WithoutElicitation.values,
            help="when a call needs approval and the client cannot ask: refuse it (deny, the default), ask in hitlchat"
            " while the call waits (inbox), or give the client a link (url)",
        )
        mcp.add_argument(
            "--attended",
            action="store_true",
            help="trust this client (with --by): its word that its user approved a call counts, up to "
            "HITL_ELICITATION_MAX_RISK. Never use this for a script or an agent that runs unattended",
        )

    def handle(self, *args: Any, **options: Any) -> str:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user named {options['user']!r}.")
        if options["list"]:
            return "\n".join(_line(each) for each in tokens.tokens_of(user)) or "No tokens."
        if (number := options["revoke"]) is not None:
            try:
                withdrawn = tokens.revoke(user, number, Actor(user.pk, "console"))
            except tokens.NoSuchToken:
                raise CommandError(f"{user.get_username()!r} has no token with the number {number}.") from None
            return f"Token {number} was revoked. Calls withdrawn: {withdrawn}."
        for option, attended in (("mark", True), ("unmark", False)):
            if options[option] is not None:
                return _mark(user, options[option], options["by"], attended=attended)
        return _make(user, TokenKind(options["kind"]), options)


def _make(user: User, kind: TokenKind, options: dict[str, Any]) -> str:
    limits = {column: options[column] for column in LIMITS if options[column] is not None}
    if options["attended"] and kind != TokenKind.MCP:
        raise CommandError("--attended: only for --kind mcp.")
    if limits and kind != TokenKind.MCP:
        raise CommandError(f"{LIMITS[next(iter(limits))]}: only for --kind mcp.")
    unknown = set(limits.get("tools", ())) - set(Tool.objects.values_list("name", flat=True))
    if unknown:
        raise CommandError(f"--tool: there is no tool named {min(unknown)!r}.")
    expires_at = options["expires"] and timezone.now() + options["expires"]
    by = _administrator(options["by"]) if options["attended"] else None
    console = Actor(user.pk, "console")
    try:
        return tokens.make(user, kind, console, options["name"], expires_at, trusted_by=by, **limits)
    except tokens.OnlyAdministrators as error:
        raise CommandError(f"--by: {error}") from error
    except ValidationError as error:
        words = (f"{field}: {' '.join(errors)}" for field, errors in error.message_dict.items())
        raise CommandError(" ".join(words)) from error


def _mark(user: User, token_id: int, by: str | None, *, attended: bool) -> str:
    try:
        tokens.token_of(user, token_id)
        tokens.trust(token_id, _administrator(by), trusted=attended)
    except tokens.NoSuchToken:
        raise CommandError(f"{user.get_username()!r} has no MCP token with the number {token_id}.") from None
    except tokens.OnlyAdministrators as error:
        raise CommandError(f"--by: {error}") from error
    if attended:
        return f"The client of token {token_id} is now trusted."
    return f"The client of token {token_id} is no longer trusted."


def _administrator(name: str | None) -> Actor:
    if name is None:
        raise CommandError("--by: give the name of the administrator who trusts this client.")
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        raise CommandError(f"--by: there is no active user named {name!r}.")
    return Actor(found.pk, "console")


def _line(own: OwnToken) -> str:
    token, limits = own.token, own.limits
    fields = [
        str(token.pk),
        token.kind,
        "".join(piece.text for piece in see(token.name).pieces) or "-",
        f"created {token.created_at:%Y-%m-%d}",
        f"last used {token.last_used_at:%Y-%m-%d}" if token.last_used_at else "never used",
        f"{'expired' if own.has_expired else 'expires'} {token.expires_at:%Y-%m-%d}" if token.expires_at else "-",
    ]
    if limits is not None:
        tools = "all tools" if limits.tools is None else "tools " + ",".join(limits.tools)
        fields += [tools, f"up to L{limits.ceiling}", f"without elicitation: {limits.without_elicitation}"]
        fields += ["trusted client"] if token.attended else []
    return "\t".join(fields)


def _days(text: str) -> timedelta:
    if not text.isdecimal() or not 1 <= int(text) <= LONGEST_DAYS:
        raise ArgumentTypeError(f"expected days, from 1 to {LONGEST_DAYS}")
    return timedelta(days=int(text))
