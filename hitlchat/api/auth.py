"""Authentication of a request: by the person's session, or by a personal token."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.errors import AuthenticationError, AuthorizationError
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.accounts.sign_in import signed_in_at, signed_in_user, stored
from hitlchat.gate.actor import Actor, Caller, Means

UNKNOWN = "Sign in, or send a personal token as “Authorization: Bearer …”."
# What a token of this kind does, it does for its user, but not as the person: `system` can never decide.
MEANS: dict[str, Means] = {TokenKind.APPROVER: "token", TokenKind.API: "system"}


@dataclass(frozen=True)
class Credential:
    """An authenticated person. `stands` tells whether the credential is still valid, for what outlives its request."""

    user: User
    means: Means
    stands: Callable[[], bool]
    token: str = ""
    signed_in_at: datetime | None = None

    @property
    def actor(self) -> Actor:
        name = self.user.get_username()
        return Actor(self.user.pk, self.means, token=self.token, signed_in_at=self.signed_in_at, name=name)

    @property
    def caller(self) -> Caller:
        return Caller("api", self.user.pk, self.user.get_username())


class ApiRequest(HttpRequest):
    auth: Credential


class PersonalToken(AuthBase):
    openapi_type = "http"
    openapi_scheme = "bearer"

    def __call__(self, request: HttpRequest) -> Credential | None:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        found = Token.find(secret.strip())
        if found is None:
            raise AuthenticationError(message="This token is unknown, or its user is no longer active.")
        if found.kind not in MEANS:
            raise AuthorizationError(message="This token is for /mcp only.")
        found.note_use()
        # Each time a query of its own: one that is kept would go by the time at which it was made.
        token_id = found.pk
        return Credential(found.user, MEANS[found.kind], lambda: Token.valid().filter(pk=token_id).exists(), found.name)


class Session(AuthBase):
    openapi_type = "apiKey"
    openapi_in = "cookie"
    openapi_name = settings.SESSION_COOKIE_NAME

    def __call__(self, request: HttpRequest) -> Credential | None:
        # A request that shows a credential is judged by it alone, whatever cookies come along.
        if "Authorization" in request.headers or not isinstance(request.user, User):
            return None
        if check_csrf(request):
            raise AuthorizationError(message="The CSRF token is missing or wrong; send it as X-CSRFToken.")
        key = request.session.session_key
        since = signed_in_at(request.session)
        return Credential(request.user, "session", lambda: signed_in_user(stored(key)) is not None, signed_in_at=since)


def decider(request: ApiRequest, to: str = "decide") -> Actor:
    """Return the person who decides. Of API credentials only an approver token stands for one (SR-18)."""
    if not request.auth.actor.is_person:
        raise AuthorizationError(
            message=f"A token of kind “api” cannot {to}. Sign in, or use a token of kind “approver”."
        )
    return request.auth.actor


def author(request: ApiRequest) -> User:
    if not may_author(request.auth.user):
        raise AuthorizationError(message="You may not write, test or publish tools.")
    return request.auth.user


def administrator(request: ApiRequest, to: str) -> Actor:
    if not may_administer(request.auth.user):
        raise AuthorizationError(message=f"Only an administrator may {to}.")
    return request.auth.actor


def only_after(require: Callable[[ApiRequest], object]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for a router, each of whose operations begins with `require`."""

    def decorated(operation: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(operation)
        def checked(request: ApiRequest, *args: Any, **kwargs: Any) -> Any:
            require(request)
            return operation(request, *args, **kwargs)

        return checked

    return decorated
