"""The token endpoint: a code becomes tokens, tokens become newer ones, and are given back."""

import logging
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

import httpx2
from django.utils import timezone
from mcp.shared.auth import OAuthToken
from pydantic import BaseModel, ValidationError

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
    """For the code in `data`. NotPossible, Refused, NoAnswer."""
    return await _granted(client, endpoint, bounds, {"grant_type": "authorization_code", **data})


async def renewed(client: Client, endpoint: str, bounds: Bounds, **data: str) -> Tokens:
    """For the refresh token in `data`. NotPossible, Refused, NoAnswer."""
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
