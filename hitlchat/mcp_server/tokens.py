"""Tokens of kind “mcp”: what each may do, made and looked up."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.base.database import only
from hitlchat.gate.actor import Actor, Caller
from hitlchat.mcp_server.models import McpToken, WithoutElicitation


@dataclass(frozen=True)
class Access:
    """The rights of a request with a valid token. `tools`: None for all of them. `attended`: a person sits at its
    client, as an administrator says.
    """

    token_id: int
    user_id: int
    user_name: str
    tools: frozenset[str] | None = None
    ceiling: int = 5
    without_elicitation: WithoutElicitation = WithoutElicitation.DENY
    token_name: str = ""
    attended: bool = False

    @property
    def caller(self) -> Caller:
        return Caller("mcp", self.user_id, self.user_name, self.token_id)

    def word(self, client: str) -> Actor:
        """The user, as far as a client says so that calls itself `client`."""
        return Actor(self.user_id, "elicitation", client=client, token=self.token_name, token_id=self.token_id)


def make(user: User, name: str = "", expires_at: datetime | None = None, **limits: Any) -> str:
    """A new token of `user` with these limits (columns of McpToken): the only time its text is known.

    ValidationError names the limit that is none.
    """
    with transaction.atomic():
        secret = Token.make(user, TokenKind.MCP, name, expires_at)
        row = McpToken(token=Token.objects.get(digest=hashed(secret)), **limits)
        row.full_clean()
        row.save(force_insert=True)
    return secret


def find(secret: str) -> Access | None:
    """Return what the token with this text may do now.

    None if there is none, or it has expired, or is of another kind.
    """
    token = only(_valid().filter(digest=hashed(secret)))
    if token is None:
        return None
    token.note_use()
    return _access(token)


def as_now(access: Access) -> Access | None:
    """Return what the token of a request that came a while ago may do by now; None if it is void."""
    token = only(_valid().filter(pk=access.token_id))
    return _access(token) if token is not None else None


def _valid() -> QuerySet[Token]:
    return Token.valid().select_related("mcp").filter(kind=TokenKind.MCP)


def _access(token: Token) -> Access:
    limits = getattr(token, "mcp", None) or McpToken(token=token)
    return Access(
        token.pk,
        token.user_id,
        token.user.get_username(),
        None if limits.tools is None else frozenset(limits.tools),
        limits.ceiling,
        WithoutElicitation(limits.without_elicitation),
        token.name,
        token.attended,
    )
