"""The token that a session shows: one that its user has, or one made for it, which ends with it."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.gate.actor import Actor
from hitlchat.mcp_server import personal

# As long as a session may last, and a little more: it ends also when the process could not end it.
LASTS: Final = timedelta(minutes=65)
NAME: Final = "Inspector, for one session"


@dataclass(frozen=True)
class Pass:
    """`about` is for its user, and says nothing secret."""

    secret: str = field(repr=False)
    about: str
    is_temporary: bool


def temporary(user: User, *, attended: bool = False, **limits: Any) -> Pass:
    """One that is made for a session; `limits` are columns of McpToken. `attended`: its word counts, says this
    administrator.

    Raises: ValidationError, OnlyAdministrators.
    """
    session = Actor(user.pk, "session")
    until, by = timezone.now() + LASTS, session if attended else None
    secret = personal.make(user, TokenKind.MCP, session, NAME, until, attended_by=by, **limits)
    return Pass(secret, "made for this session", is_temporary=True)


def given(secret: str) -> Pass:
    return Pass(secret, "the one you gave", is_temporary=False)


def revoke(shown: Pass, *, by_person: bool) -> None:
    """What was called with it and has not started does not start any more. `by_person`: its user ended the session."""
    token = Token.objects.filter(digest=hashed(shown.secret)).select_related("user").first()
    if shown.is_temporary and token is not None:
        assert isinstance(token.user, User)
        with suppress(personal.NoSuchToken):
            personal.revoke(token.user, token.pk, Actor(token.user_id, "session" if by_person else "system"))
