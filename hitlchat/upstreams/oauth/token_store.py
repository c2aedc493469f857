"""The tokens of a sign-in: got at the token endpoint, sealed in the database, renewed by one process at a time."""

import logging
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
from django.db.models.functions import Now
from django.utils import timezone
from mcp.shared.auth import OAuthToken
from pydantic import BaseModel, ValidationError

from hitlchat.base.canonical import storable
from hitlchat.base.lease import SLACK
from hitlchat.upstreams.models import SignIn
from hitlchat.upstreams.oauth import clients
from hitlchat.upstreams.oauth.clients import Client
from hitlchat.upstreams.oauth.discovery import LONGEST_SCOPES, Bounds, NoAnswer, NotPossible, fetched
from hitlchat.upstreams.values import SHORTEST_SECRET

logger = logging.getLogger(__name__)

_TOKEN = re.compile(rf"[\x21-\x7e]{{{SHORTEST_SECRET},16384}}")
LONGEST_LIFE = timedelta(days=3650)
# What the standard calls errors, in words; others are told as they are.
_ERRORS = {
    "invalid_grant": "it does not know this sign-in any more",
    "invalid_client": "it does not know this installation, or not with this client secret",
    "unauthorized_client": "this installation may not sign in there",
    "invalid_scope": "it does not give these rights",
    "invalid_target": "it gives no tokens for this server",
    "invalid_request": "it found something wrong with the request",
    "unsupported_grant_type": "it does not support this way to sign in",
    "access_denied": "access was denied",
    "temporarily_unavailable": "it is not available at present",
    "server_error": "something went wrong there",
}


class Refused(NotPossible):
    """The authorization server said no; asking again does not help."""


class _Refusal(BaseModel):
    error: str = ""


@dataclass(frozen=True, repr=False)
class Tokens:
    """`scopes`: None if they are those that were asked for."""

    access: str
    refresh: str = ""
    scopes: str | None = None
    expires_at: datetime | None = None


def in_words(error: str) -> str:
    """An error code of OAuth. What comes from outside is only repeated if it looks like one."""
    if error in _ERRORS:
        return _ERRORS[error]
    return f"it answered “{error}”" if re.fullmatch(r"[a-z_]{1,40}", error) else "it did not say why in a known way"


async def exchanged(client: Client, endpoint: str, bounds: Bounds, **data: str) -> Tokens:
    """Exchange the code in `data` for tokens. Raises: NotPossible, Refused, NoAnswer."""
    return await _granted(client, endpoint, bounds, {"grant_type": "authorization_code", **data})


async def renewed(client: Client, endpoint: str, bounds: Bounds, **data: str) -> Tokens:
    """Exchange the refresh token in `data`. Raises: NotPossible, Refused, NoAnswer."""
    return await _granted(client, endpoint, bounds, {"grant_type": "refresh_token", **data})


async def revoked(client: Client, endpoint: str, bounds: Bounds, token: str, kind: str) -> None:
    """Have the authorization server forget a token. NotPossible, NoAnswer."""
    response = await _asked(
        client, endpoint, bounds, {"token": token, "token_type_hint": kind}, "The revocation endpoint"
    )
    if response.status_code != 200:
        raise NotPossible(f"The revocation endpoint answered {response.status_code}.")


async def _granted(client: Client, endpoint: str, bounds: Bounds, data: dict[str, str]) -> Tokens:
    response = await _asked(client, endpoint, bounds, data, "The token endpoint")
    if response.status_code >= 500 or response.status_code == 429:
        raise NoAnswer(f"The token endpoint answered {response.status_code}.")
    if response.status_code != 200:
        raise Refused(f"The authorization server refused: {in_words(_error(response))}.")
    try:
        return _tokens(OAuthToken.model_validate_json(response.content))
    except ValidationError:
        # Without the error itself, which quotes what came.
        raise NotPossible("The token endpoint did not answer with tokens.") from None


async def _asked(client: Client, endpoint: str, bounds: Bounds, data: dict[str, str], what: str) -> httpx2.Response:
    request = client.authenticated(data)
    request.url = httpx2.URL(endpoint)
    request.headers["Host"] = request.url.netloc.decode("ascii")
    return await fetched(request, bounds, what)


def _error(response: httpx2.Response) -> str:
    try:
        return _Refusal.model_validate_json(response.content).error
    except ValidationError:
        return ""


def _tokens(told: OAuthToken) -> Tokens:
    refresh = told.refresh_token or ""
    if not _TOKEN.fullmatch(told.access_token) or (refresh and not _TOKEN.fullmatch(refresh)):
        raise NotPossible("The token endpoint gave a token that cannot be sent, or that is too short to be masked.")
    if told.scope is not None and len(told.scope) > LONGEST_SCOPES:
        raise NotPossible("The token endpoint gave more rights than can be kept.")
    return Tokens(told.access_token, refresh, told.scope, _expiry(told.expires_in))


def _expiry(seconds: int | None) -> datetime | None:
    if seconds is None:
        return None
    longest = int(LONGEST_LIFE.total_seconds())
    return timezone.now() + timedelta(seconds=max(0, min(seconds, longest)))


# Longer than a request for newer ones can take.
LEASE = timedelta(seconds=30)
SOON = timedelta(seconds=60)
MOST_LACKING = 1000


@dataclass(frozen=True, repr=False)
class Held:
    """A generation of tokens. `spoilt`: why they are of no use any more."""

    tokens: Tokens
    generation: int
    renewed_at: datetime
    spoilt: str
    client: Client
    endpoint: str
    resource: str

    @property
    def is_due(self) -> bool:
        """Return whether it runs out soon: a fifth of its life or a minute before its end, whichever is later."""
        if (ends := self.tokens.expires_at) is None:
            return False
        return timezone.now() >= ends - min(SOON, (ends - self.renewed_at) / 5)

    @property
    def is_over(self) -> bool:
        return self.tokens.expires_at is not None and timezone.now() >= self.tokens.expires_at


def read(server_id: UUID, origin: str) -> Held | None:
    """None: nobody is signed in. Unreadable."""
    kept = SignIn.objects.filter(pk=server_id).exclude(mark="").first()
    if kept is None:
        return None
    if kept.origin != origin:
        raise clients.Unreadable("The sign-in is for another address than the server has now: sign in again.")
    access, refresh = ("", "") if kept.problem else clients.unseal(kept.tokens, "tokens", server_id, origin)
    return Held(
        Tokens(access, refresh, kept.scopes_granted, kept.expires_at),
        kept.generation,
        kept.renewed_at or timezone.now(),
        kept.problem,
        clients.of(kept),
        kept.token_endpoint,
        kept.resource,
    )


def columns(tokens: Tokens, server_id: UUID, origin: str) -> dict[str, Any]:
    """Return how tokens are kept."""
    return {
        "tokens": clients.seal([tokens.access, tokens.refresh], "tokens", server_id, origin),
        "renews": bool(tokens.refresh),
        "expires_at": tokens.expires_at,
        "renewed_at": timezone.now(),
        "renewing_by": "",
        "renewing_until": None,
        "problem": "",
    }


def claim(server_id: UUID, generation: int, who: str) -> bool:
    """Return whether `who` is the one to renew this generation: refresh tokens are often good for a single use."""
    row = SignIn.objects.filter(pk=server_id, generation=generation, tokens__gt="")
    free = row.filter(renewing_until=None) | row.filter(renewing_until__lt=Now())
    # Further ahead than it can be: the clock was set back since.
    free |= row.filter(renewing_until__gt=Now() + LEASE + SLACK)
    return free.update(renewing_by=who, renewing_until=Now() + LEASE) == 1


def release(server_id: UUID, who: str) -> None:
    SignIn.objects.filter(pk=server_id, renewing_by=who).update(renewing_by="", renewing_until=None)


def replace(server_id: UUID, origin: str, held: Held, tokens: Tokens) -> bool:
    """Keep the next generation, unless somebody has signed in anew, or out, in the meantime."""
    row = SignIn.objects.filter(pk=server_id, generation=held.generation, origin=origin).exclude(mark="")
    granted = {} if tokens.scopes is None else {"scopes_granted": storable(tokens.scopes)}
    kept = columns(tokens, server_id, origin)
    return row.update(generation=held.generation + 1, **kept, **granted) == 1


def spoil(server_id: UUID, generation: int, why: str) -> None:
    """Forget tokens that are of no use any more. The sign-in stays what it was, for a person to renew."""
    row = SignIn.objects.filter(pk=server_id, generation=generation)
    row.update(tokens="", renews=False, problem=storable(why), renewing_by="", renewing_until=None)


def lacks(server_id: UUID, scopes: str) -> None:
    """A call was refused for want of these rights."""
    kept = SignIn.objects.filter(pk=server_id).exclude(mark="").first()
    if kept is None:
        return
    lacking = " ".join(dict.fromkeys([*kept.lacking.split(), *storable(scopes).split()]))
    if lacking != kept.lacking and len(lacking) <= MOST_LACKING:
        SignIn.objects.filter(pk=server_id, mark=kept.mark).update(lacking=lacking)
