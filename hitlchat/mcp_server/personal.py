"""A person's own tokens, of all kinds: made, listed and revoked."""

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
    """This person has no token with that id."""


@dataclass(frozen=True)
class Held:
    """One token, with its limits if it is for /mcp."""

    token: Token
    limits: McpToken | None

    @property
    def has_expired(self) -> bool:
        return self.token.expires_at is not None and self.token.expires_at <= timezone.now()


def make(
    user: User, kind: TokenKind, actor: Actor, name: str = "", expires_at: datetime | None = None, **limits: Any
) -> str:
    """A new token, made by `actor`: the only time its text is known. `limits`: columns of McpToken, for kind mcp.

    ValidationError names what does not fit.
    """
    with transaction.atomic():
        if kind == TokenKind.MCP:
            secret = tokens.make(user, name, expires_at, **limits)
        else:
            secret = Token.make(user, kind, name, expires_at)
        _record("token.made", Token.objects.select_related("mcp").get(digest=hashed(secret)), actor)
    return secret


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
    """How many calls that came in with it have not started."""
    return Submission.objects.filter(token=token, call__status__in=withdraw.NOT_STARTED).count()


def revoke(user: User, token_id: int, actor: Actor) -> int:
    """It opens nothing from now on, its streams end, and what it asked for does not start any more: how many calls.

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


def _record(name: str, token: Token, actor: Actor) -> None:
    """Everything about it but its text, and what that could be told from."""
    data = {
        "token": token.pk,
        "user": token.user.get_username(),
        "kind": token.kind,
        "name": token.name,
        "expires_at": token.expires_at and token.expires_at.isoformat(),
    }
    if (limits := getattr(token, "mcp", None)) is not None:
        data |= {column: getattr(limits, column) for column in ("tools", "ceiling", "without_elicitation")}
    transition.note(None, name, actor=actor, data=data)
