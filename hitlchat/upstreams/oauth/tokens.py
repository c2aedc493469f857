"""The tokens of a sign-in: got at the token endpoint, sealed in the database, renewed by one process at a time.

A connection holds its token in memory while it is good; it is refreshed before it ends and when it is refused.
"""

import asyncio
import logging
import re
from collections import deque
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
from django.db.models.functions import Now
from django.utils import timezone
from mcp.shared.auth import OAuthToken
from pydantic import BaseModel, ValidationError

from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.lease import SLACK
from hitlchat.base.sentences import translatable
from hitlchat.upstreams import models
from hitlchat.upstreams.client import Bearer, NoToken
from hitlchat.upstreams.models import SignIn, Transport, UpstreamServer
from hitlchat.upstreams.oauth import clients
from hitlchat.upstreams.oauth.authority import LONGEST_SCOPES, Bounds, NoAnswer, NotPossible, bounds_of, fetched
from hitlchat.upstreams.oauth.clients import Client, Unreadable
from hitlchat.upstreams.server_draft import SHORTEST_SECRET

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
    """Return an OAuth error code in words; an unknown one is repeated only if it looks like one."""
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
    """Return the tokens of a sign-in; None if nobody is signed in.

    Raises: Unreadable
    """
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
    """Keep the next generation, unless somebody has signed in again, or out, in the meantime."""
    row = SignIn.objects.filter(pk=server_id, generation=held.generation, origin=origin).exclude(mark="")
    granted = {} if tokens.scopes is None else {"scopes_granted": storable(tokens.scopes)}
    kept = columns(tokens, server_id, origin)
    return row.update(generation=held.generation + 1, **kept, **granted) == 1


def spoil(server_id: UUID, generation: int, why: str) -> None:
    """Forget tokens that are of no use any more. The sign-in stays what it was, for a person to renew."""
    row = SignIn.objects.filter(pk=server_id, generation=generation)
    row.update(tokens="", renews=False, problem=storable(why), renewing_by="", renewing_until=None)


def lacks(server_id: UUID, scopes: str) -> None:
    """Note the rights for want of which a call was refused."""
    kept = SignIn.objects.filter(pk=server_id).exclude(mark="").first()
    if kept is None:
        return
    lacking = " ".join(dict.fromkeys([*kept.lacking.split(), *storable(scopes).split()]))
    if lacking != kept.lacking and len(lacking) <= MOST_LACKING:
        SignIn.objects.filter(pk=server_id, mark=kept.mark).update(lacking=lacking)


# One that is refused so soon would be refused again.
JUST_NOW_SECONDS = 30.0
# Whatever an authorization server says, so long a token is used; and so long nobody asks again who did not answer.
SHORTEST_LIFE = timedelta(seconds=1)
PAUSE_SECONDS = 10.0
LOOK_SECONDS = 0.2
WAIT_SECONDS = 40.0
MOST_HIDDEN = 12


def credential(server: UpstreamServer) -> httpx2.Auth | None:
    """Return what authorises requests to `server` where it is now, with the sign-in that there is when they are made.

    None: nobody is signed in. The tokens go to no other origin, whoever uses it.
    """
    if server.transport == Transport.STDIO or not models.SignIn.objects.filter(pk=server.pk).exclude(mark="").exists():
        return None
    origin = models.origin_of(server.url)
    try:
        bounds = bounds_of(server)
    except NotPossible as error:
        return Bearer(Nothing(str(error)), server.url)
    return Bearer(Holder(server.pk, origin, bounds), server.url)


class Nothing:
    """No token, for a reason that somebody has to do away with."""

    def __init__(self, why: str) -> None:
        self._why = why

    def hidden(self) -> tuple[str, ...]:
        return ()

    async def current(self) -> str:
        raise NoToken(self._why, 401)

    async def renewed(self, refused: str) -> str:  # noqa: ARG002
        raise NoToken(self._why, 401)

    async def lacks(self, scopes: str) -> None:
        """Ignore missing rights: nothing was sent."""


class Holder:
    """Holds the token of one connection, on one loop."""

    def __init__(self, server_id: UUID, origin: str, bounds: Bounds) -> None:
        self._server_id, self._origin, self._bounds = server_id, origin, bounds
        self._held: Held | None = None
        self._hidden: tuple[str, ...] = ()
        self._secrets: deque[str] = deque(maxlen=MOST_HIDDEN)
        self._renewing: asyncio.Task[Held | NoToken] | None = None
        self._not_before, self._trouble = 0.0, ""
        self._refused_until = 0.0

    def hidden(self) -> tuple[str, ...]:
        return self._hidden

    async def current(self) -> str:
        held = self._held or await self._read()
        if held is None:
            return ""
        if timezone.now() - held.renewed_at < SHORTEST_LIFE:
            return held.tokens.access
        if held.is_due and held.tokens.refresh:
            held = await self._anew(held)
        elif held.is_over:
            raise NoToken("the sign-in has run out, and cannot be renewed by itself: sign in again", 401)
        return held.tokens.access

    async def renewed(self, refused: str) -> str:
        held = await self._read()
        if held is None:
            raise NoToken("nobody is signed in any more", 401)
        if held.tokens.access != refused:
            return held.tokens.access
        if not held.tokens.refresh:
            raise NoToken("the server does not take the sign-in any more: sign in again", 401)
        loop = asyncio.get_running_loop()
        if loop.time() < self._refused_until:
            raise NoToken("the server does not take the sign-in, although it was renewed just now", 401)
        fresh = await self._anew(held)
        self._refused_until = loop.time() + JUST_NOW_SECONDS
        return fresh.tokens.access

    async def lacks(self, scopes: str) -> None:
        await in_db(lacks)(self._server_id, scopes)

    async def _read(self) -> Held | None:
        """Return what is kept now. NoToken: it is of no use."""
        try:
            held = await in_db(read)(self._server_id, self._origin)
        except Unreadable as error:
            raise NoToken(str(error), 401) from error
        self._keep(held)
        if held is not None and held.spoilt:
            raise NoToken(held.spoilt, 401)
        return held

    def _keep(self, held: Held | None) -> None:
        self._held = None if held is None or held.spoilt else held
        if held is None:
            return
        new = [each for each in (held.tokens.access, held.tokens.refresh, held.client.secret) if each]
        if not set(new) <= set(self._secrets):
            self._secrets.extend(each for each in new if each not in self._secrets)
            self._hidden = tuple(self._secrets)

    async def _anew(self, held: Held) -> Held:
        """Return the next generation: one refresh for all who need it, which nobody who gives up cuts short."""
        if asyncio.get_running_loop().time() < self._not_before:
            return _or_raise(self._as_it_is(held))
        if self._renewing is None or self._renewing.done():
            # Of its own context: what a call counts as sent is the call, and not this.
            self._renewing = asyncio.create_task(self._renew(held), context=Context())
        return _or_raise(await asyncio.shield(self._renewing))

    async def _renew(self, held: Held) -> Held | NoToken:
        try:
            return await self._renewed_by_one(held)
        except NoToken as why:
            return why
        except NoAnswer as error:
            self._not_before = asyncio.get_running_loop().time() + PAUSE_SECONDS
            self._trouble = str(error)
            return self._as_it_is(held)

    def _as_it_is(self, held: Held) -> Held | NoToken:
        """Return the present tokens while the authorization server does not answer."""
        return NoToken(f"the sign-in could not be renewed: {self._trouble}") if held.is_over else held

    async def _renewed_by_one(self, held: Held) -> Held:
        """Refresh here, or wait for the process that has begun to. Raises: NoToken, NoAnswer."""
        who, end = uuid4().hex, asyncio.get_running_loop().time() + WAIT_SECONDS
        while not await in_db(claim)(self._server_id, held.generation, who):
            now = await self._read()
            if now is None:
                raise NoToken("nobody is signed in any more", 401)
            if now.generation != held.generation:
                return now
            if asyncio.get_running_loop().time() > end:
                raise NoAnswer("another process has not done it in time.")
            await asyncio.sleep(LOOK_SECONDS)
        try:
            return await self._replaced(held)
        finally:
            await in_db(release)(self._server_id, who)

    async def _replaced(self, held: Held) -> Held:
        try:
            asked = {"refresh_token": held.tokens.refresh, "resource": held.resource}
            fresh = await renewed(held.client, held.endpoint, self._bounds, **asked)
        except NoAnswer:
            raise
        except NotPossible as error:
            logger.warning("The sign-in at an upstream server could not be renewed: %s", error)
            await in_db(spoil)(self._server_id, held.generation, translatable(f"It could not be renewed. {error}"))
            self._held = None
            raise NoToken(f"the sign-in could not be renewed: {error}", 401) from error
        # Some give no new refresh token: the old one stays good.
        tokens = Tokens(fresh.access, fresh.refresh or held.tokens.refresh, fresh.scopes, fresh.expires_at)
        await in_db(replace)(self._server_id, self._origin, held, tokens)
        now = await self._read()
        if now is None:
            raise NoToken("nobody is signed in any more", 401)
        return now


def _or_raise(outcome: Held | NoToken) -> Held:
    if isinstance(outcome, NoToken):
        raise NoToken(str(outcome), outcome.http_status)
    return outcome
