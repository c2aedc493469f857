"""Actors: the person or program that acts, how they were known, and the person who acts on a page."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest

from hitlchat.accounts import sign_in
from hitlchat.accounts.access import person

# `elicitation`: the person's MCP client said so.
Means = Literal["session", "token", "console", "elicitation", "system"]
# Where a call comes from.
Kind = Literal["chat", "studio", "api", "mcp"]


@dataclass(frozen=True)
class Actor:
    """A person (`user_id`) known by session, personal approver token or console, or vouched for by their MCP client; or
    the system itself. `client`: what that client calls itself, which may be anything. `token`: the name of the token
    that was shown, and of an MCP client `token_id`, its number. `signed_in_at`: when they gave their password for their
    session last. `name`: of the person, where it is at hand; the record looks it up otherwise.
    """

    user_id: int | None
    means: Means
    client: str = ""
    token: str = ""
    signed_in_at: datetime | None = None
    name: str = field(default="", compare=False)
    token_id: int | None = None

    @property
    def is_person(self) -> bool:
        return self.user_id is not None and self.means in ("session", "token", "console")

    @property
    def person(self) -> User | None:
        """Read the person who acts from the database; None for a program or hitlchat itself."""
        return User.objects.filter(pk=self.user_id or 0).first() if self.is_person else None

    @property
    def known_by(self) -> dict[str, str]:
        """Return what else there is to say of how they were known, for the record."""
        return {name: said for name, said in (("client", self.client), ("token", self.token)) if said}


SYSTEM = Actor(None, "system")
# Whoever can run commands is the operator, and nobody in particular.
CONSOLE = Actor(None, "console")


@dataclass(frozen=True)
class Caller:
    """The submitter of a call, on whose behalf, and where it came from; `token_id`: of an MCP client."""

    kind: Kind
    user_id: int
    user_name: str
    token_id: int | None = None

    @property
    def actor(self) -> Actor:
        return Actor(self.user_id, "system", name=self.user_name)


def actor_of(request: HttpRequest) -> Actor:
    """Known by their session, with when they gave their password for it last."""
    return actor_in(request.session, person(request))


def actor_in(session: SessionBase, user: User) -> Actor:
    """Return the actor of a session; a long-lived connection passes one it has just read again."""
    return Actor(user.pk, "session", signed_in_at=sign_in.signed_in_at(session), name=user.get_username())
