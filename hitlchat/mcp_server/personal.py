"""A person's own tokens, of all kinds: made, listed and revoked; and which MCP clients a person sits at."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.gate import transition, withdraw
from hitlchat.gate.actor import Actor
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.models import McpToken, Submission

REVOKED = "its token was revoked"


class NoSuchToken(LookupError):
    """The person has no token with that id."""


class OnlyAdministrators(PermissionError):
    """Only an administrator says whether a person sits at an MCP client, whoever owns its token."""

    def __init__(self) -> None:
        super().__init__("Only an administrator says whether a person sits at an MCP client.")


@dataclass(frozen=True)
class Held:
    """One token, with its limits if it is for /mcp."""

    token: Token
    limits: McpToken | None

    @property
    def has_expired(self) -> bool:
        return self.token.expires_at is not None and self.token.expires_at <= timezone.now()


def make(
    user: User,
    kind: TokenKind,
    actor: Actor,
    name: str = "",
    expires_at: datetime | None = None,
    *,
    attended_by: Actor | None = None,
    **limits: Any,
) -> str:
    """A new token, made by `actor`: the only time its text is known. `limits`: columns of McpToken, for kind mcp.

    `attended_by`: the administrator who says that a person sits at its client.
    Raises: ValidationError, OnlyAdministrators, NoSuchToken (`attended_by`, of another kind than mcp).
    """
    with transaction.atomic():
        if kind == TokenKind.MCP:
            secret = tokens.make(user, name, expires_at, **limits)
        else:
            secret = Token.make(user, kind, name, expires_at)
        made = Token.objects.select_related("mcp").get(digest=hashed(secret))
        _record("token.made", made, actor)
        if attended_by is not None:
            mark(made.pk, attended_by, attended=True)
    return secret


def mark(token_id: int, actor: Actor, *, attended: bool) -> Token:
    """Say as an administrator whether a person sits at the client that shows this MCP token, from now on.

    A mark counts for what is asked from now on; its end also for what is open.
    Raises: NoSuchToken, OnlyAdministrators.
    """
    with transaction.atomic():
        _require_administrator(actor)
        found = Token.objects.select_for_update(of=("self",)).select_related("user", "mcp")
        token = found.filter(pk=token_id, kind=TokenKind.MCP).first()
        if token is None:
            raise NoSuchToken
        if token.attended != attended:
            token.attended = attended
            token.save(update_fields=["attended"])
            _record("token.marked_attended" if attended else "token.unmarked_attended", token, actor)
    return token


def of_clients() -> Iterator[Token]:
    """Valid MCP tokens of everyone: first those at whose client a person sits, then the newest."""
    yield from Token.valid().filter(kind=TokenKind.MCP).order_by("-attended", "-pk")


def held(user: User) -> Iterator[Held]:
    """The newest first."""
    for token in Token.objects.filter(user=user).select_related("mcp").order_by("-pk"):
        limits = getattr(token, "mcp", None) or McpToken(token=token)
        yield Held(token, limits if token.kind == TokenKind.MCP else None)


def one(user: User, token_id: int) -> Held:
    """NoSuchToken."""
    for found in held(user):
        if found.token.pk == token_id:
            return found
    raise NoSuchToken


def waiting(token: Token) -> int:
    """Return how many calls that came in with it have not started."""
    return Submission.objects.filter(token=token, call__status__in=withdraw.NOT_STARTED).count()


def revoke(user: User, token_id: int, actor: Actor) -> int:
    """Revoke it: its streams end, and what it asked for does not start any more. Returns how many calls that are.

    NoSuchToken.
    """
    with transaction.atomic():
        # A call that is just coming in with it comes before this, or fails.
        token = Token.objects.select_for_update().filter(user=user, pk=token_id).first()
        if token is None:
            raise NoSuchToken
        rows = Submission.objects.filter(token=token, call__status__in=withdraw.NOT_STARTED)
        calls = list(rows.values_list("call_id", flat=True))
        _record("token.revoked", token, actor)
        token.delete()
        for call_id in calls:
            withdraw.withdraw_call(call_id, actor=actor, why=REVOKED)
    return len(calls)


def _require_administrator(actor: Actor) -> None:
    rows = User.objects.select_for_update().filter(pk=actor.user_id or 0, is_superuser=True, is_active=True)
    if actor.means not in ("session", "console") or not rows.exists():
        raise OnlyAdministrators


def _record(name: str, token: Token, actor: Actor) -> None:
    """Everything about it but its text, and what that could be told from."""
    data = {
        "token": token.pk,
        "user": token.user.get_username(),
        "kind": token.kind,
        "name": token.name,
        "expires_at": token.expires_at and token.expires_at.isoformat(),
    }
    if token.kind == TokenKind.MCP:
        data["attended"] = token.attended
    if (limits := getattr(token, "mcp", None)) is not None:
        data |= {column: getattr(limits, column) for column in ("tools", "ceiling", "without_elicitation")}
    transition.note(None, name, actor=actor, data=data)
