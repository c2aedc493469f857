"""The tokens of a sign-in: from the token endpoint, sealed in the database, renewed by one process at a time."""

import asyncio
import logging
import re
from collections import deque
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from mcp.shared.auth import OAuthToken
from pydantic import BaseModel, ValidationError

from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.lease import SLACK
from hitlchat.base.problems import required
from hitlchat.base.sentences import translatable
from hitlchat.outbound.addresses import origin_of
from hitlchat.secrets.values import SHORTEST_SECRET
from hitlchat.upstreams.client.http import Bearer, NoToken
from hitlchat.upstreams.models import SignIn, Transport, UpstreamServer
from hitlchat.upstreams.oauth import clients
from hitlchat.upstreams.oauth.authority import LONGEST_SCOPES, Bounds, NoAnswer, NotPossible, bounds_of, fetched
from hitlchat.upstreams.oauth.clients import Client, Unreadable

LONGEST_LIFE = timedelta(days=3650)
# A token is used for at least this long. After an authority did not answer, it is left alone for the pause.
SHORTEST_LIFE = timedelta(seconds=1)
PAUSE_SECONDS = 10.0
SOON = timedelta(seconds=60)
# Longer than a refresh can take.
LEASE = timedelta(seconds=30)
LOOK_SECONDS = 0.2
WAIT_SECONDS = 40.0
# If a token is rejected this soon after a refresh, another refresh would not help.
JUST_NOW_SECONDS = 30.0
MOST_LACKING = 1000
MOST_HIDDEN = 12
_TOKEN = re.compile(rf"[\x21-\x7e]{{{SHORTEST_SECRET},16384}}")
# The error codes of the standard, in words; others are shown as they are.
_ERRORS = {
    "invalid_grant": "it no longer knows this sign-in",
    "invalid_client": "it does not know this installation, or not with this client secret",
    "unauthorized_client": "this installation may not sign in there",
    "invalid_scope": "it does not give these rights",
    "invalid_target": "it gives no tokens for this server",
    "invalid_request": "it found something wrong with the request",
    "unsupported_grant_type": "it does not support this way to sign in",
    "access_denied": "access was denied",
    "temporarily_unavailable": "it is currently unavailable",
    "server_error": "something went wrong there",
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class Tokens:
    """`scopes`: None if they are those that were requested."""

    access: str
    refresh: str = ""
    scopes: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, repr=False)
class Generation:
    """The tokens of a stored sign-in, and the client that may renew them."""

    row: SignIn
    client: Client
    access: str
    refresh: str
    renewed_at: datetime

    @property
    def is_due(self) -> bool:
        """Return whether it runs out soon: a fifth of its life or a minute before its end, whichever is later."""
        if (ends := self.row.expires_at) is None:
            return False
        return timezone.now() >= ends - min(SOON, (ends - self.renewed_at) / 5)

    @property
    def is_over(self) -> bool:
        return self.row.expires_at is not None and timezone.now() >= self.row.expires_at


class _Refusal(BaseModel):
    error: str = ""


def in_words(error: str) -> str:
    """Return an OAuth error code in words; an unknown one is repeated only if it looks like one."""
    if error in _ERRORS:
        return _ERRORS[error]
    return f"it answered “{error}”" if re.fullmatch(r"[a-z_]{1,40}", error) else "it did not say why in a known way"


async def granted(client: Client, endpoint: str, bounds: Bounds, kind: str, **data: str) -> Tokens:
    """Exchange a code or a refresh token, as `kind` of grant names it. Raises: NotPossible, NoAnswer"""
    request = client.request(endpoint, {"grant_type": kind, **data})
    response = await fetched(request, bounds, "The token endpoint")
    if response.status_code >= 500 or response.status_code == 429:
        raise NoAnswer(f"The token endpoint answered {response.status_code}.")
    if response.status_code != 200:
        try:
            error = _Refusal.model_validate_json(response.content).error
        except ValidationError:
            error = ""
        raise NotPossible(f"The authorization server refused: {in_words(error)}.")
    try:
        found = OAuthToken.model_validate_json(response.content)
    except ValidationError:
        # Not chained: the error quotes the answer.
        raise NotPossible("The token endpoint did not answer with tokens.") from None
    refresh = found.refresh_token or ""
    if not _TOKEN.fullmatch(found.access_token) or (refresh and not _TOKEN.fullmatch(refresh)):
        raise NotPossible("The token endpoint gave a token that cannot be sent, or that is too short to be masked.")
    if found.scope is not None and len(found.scope) > LONGEST_SCOPES:
        raise NotPossible("The token endpoint granted more rights than can be stored.")
    life = None if found.expires_in is None else max(0, min(found.expires_in, int(LONGEST_LIFE.total_seconds())))
    expires_at = None if life is None else timezone.now() + timedelta(seconds=life)
    return Tokens(found.access_token, refresh, found.scope, expires_at)


async def revoked(client: Client, endpoint: str, bounds: Bounds, token: str, kind: str) -> None:
    """Have the authorization server forget a token. Raises: NotPossible, NoAnswer"""
    request = client.request(endpoint, {"token": token, "token_type_hint": kind})
    response = await fetched(request, bounds, "The revocation endpoint")
    if response.status_code != 200:
        raise NotPossible(f"The revocation endpoint answered {response.status_code}.")


def columns(tokens: Tokens, server_id: UUID, origin: str) -> dict[str, Any]:
    return {
        "tokens": clients.seal([tokens.access, tokens.refresh], "tokens", server_id, origin),
        "renews": bool(tokens.refresh),
        "expires_at": tokens.expires_at,
        "renewed_at": timezone.now(),
        "renewing_by": "",
        "renewing_until": None,
        "problem": "",
    }


def credential(server: UpstreamServer) -> httpx2.Auth | None:
    """Return the authorization of requests to the origin of `server`; None if nobody is signed in."""
    is_signed_in = server.transport != Transport.STDIO and signed_in(server.pk).exists()
    return Bearer(Holder(server), server.url) if is_signed_in else None


def signed_in(server_id: UUID) -> QuerySet[SignIn]:
    return SignIn.objects.filter(pk=server_id).exclude(mark="")


class Holder:
    """Holds the token of one connection, on one loop."""

    def __init__(self, server: UpstreamServer) -> None:
        self._server, self._origin, self._trouble = server, origin_of(server.url), ""
        self._present: Generation | None = None
        self._secrets: deque[str] = deque(maxlen=MOST_HIDDEN)
        self._renewing: asyncio.Task[Generation | NoToken] | None = None
        self._not_before = self._refused_until = 0.0

    def hidden(self) -> tuple[str, ...]:
        return tuple(self._secrets)

    async def current(self) -> str:
        present = self._present or await self._read()
        if present is None:
            return ""
        if timezone.now() - present.renewed_at < SHORTEST_LIFE:
            return present.access
        if present.is_due and present.refresh:
            present = await self._next(present)
        elif present.is_over:
            raise NoToken("the sign-in has expired and cannot be renewed automatically: sign in again", 401)
        return present.access

    async def renewed(self, refused: str) -> str:
        present = await self._read_signed_in()
        if present.access != refused:
            return present.access
        if not present.refresh:
            raise NoToken("the server no longer accepts the sign-in: sign in again", 401)
        loop = asyncio.get_running_loop()
        if loop.time() < self._refused_until:
            raise NoToken("the server rejects the sign-in, although it was just renewed", 401)
        fresh = await self._next(present)
        self._refused_until = loop.time() + JUST_NOW_SECONDS
        return fresh.access

    async def lacks(self, scopes: str) -> None:
        await in_db(_lacks)(self._server.pk, scopes)

    async def _read(self) -> Generation | None:
        """Return the stored generation; None if nobody is signed in. Raises: NoToken, it is unusable"""
        try:
            bounds_of(self._server)
            found = await in_db(_stored)(self._server.pk, self._origin)
        except (NotPossible, Unreadable) as error:
            raise NoToken(str(error), 401) from error
        self._present = None if found is None or found.row.problem else found
        if found is None:
            return None
        secrets = [each for each in (found.access, found.refresh, found.client.secret) if each]
        self._secrets.extend(each for each in secrets if each not in self._secrets)
        if found.row.problem:
            raise NoToken(found.row.problem, 401)
        return found

    async def _read_signed_in(self) -> Generation:
        return required(await self._read(), NoToken("nobody is signed in any more", 401))

    async def _next(self, present: Generation) -> Generation:
        """Return the next generation, from one refresh for all who wait; it continues if one of them is cancelled."""
        if asyncio.get_running_loop().time() < self._not_before:
            outcome = self._unless_over(present)
        else:
            if self._renewing is None or self._renewing.done():
                # In a context of its own: the refresh must not count as the call being sent.
                self._renewing = asyncio.create_task(self._renew(present), context=Context())
            outcome = await asyncio.shield(self._renewing)
        if isinstance(outcome, NoToken):
            raise NoToken(str(outcome), outcome.http_status)
        return outcome

    async def _renew(self, present: Generation) -> Generation | NoToken:
        try:
            return await self._renewed_by_one(present)
        except NoToken as why:
            return why
        except NoAnswer as error:
            self._not_before = asyncio.get_running_loop().time() + PAUSE_SECONDS
            self._trouble = str(error)
            return self._unless_over(present)

    def _unless_over(self, present: Generation) -> Generation | NoToken:
        """Return the present tokens, until they expire, while the authorization server does not answer."""
        return NoToken(f"the sign-in could not be renewed: {self._trouble}") if present.is_over else present

    async def _renewed_by_one(self, present: Generation) -> Generation:
        """Refresh, or wait for another process that is doing so. Raises: NoToken, NoAnswer"""
        who, end = uuid4().hex, asyncio.get_running_loop().time() + WAIT_SECONDS
        while not await in_db(_claim)(self._server.pk, present.row.generation, who):
            now = await self._read_signed_in()
            if now.row.generation != present.row.generation:
                return now
            if asyncio.get_running_loop().time() > end:
                raise NoAnswer("another process did not finish in time.")
            await asyncio.sleep(LOOK_SECONDS)
        try:
            return await self._refresh(present)
        finally:
            mine = SignIn.objects.filter(pk=self._server.pk, renewing_by=who)
            await in_db(mine.update)(renewing_by="", renewing_until=None)

    async def _refresh(self, present: Generation) -> Generation:
        data = {"refresh_token": present.refresh, "resource": present.row.resource}
        bounds, endpoint = bounds_of(self._server), present.row.token_endpoint
        try:
            tokens = await granted(present.client, endpoint, bounds, "refresh_token", **data)
        except NoAnswer:
            raise
        except NotPossible as error:
            logger.warning("The sign-in at an upstream server could not be renewed: %s", error)
            problem = storable(translatable(f"The sign-in could not be renewed. {error}"))
            # The useless tokens are deleted. The sign-in itself stays, for a person to renew.
            row = SignIn.objects.filter(pk=present.row.pk, generation=present.row.generation)
            await in_db(row.update)(tokens="", renews=False, problem=problem, renewing_by="", renewing_until=None)
            self._present = None
            raise NoToken(f"the sign-in could not be renewed: {error}", 401) from error
        # Without a new refresh token, the old one stays valid.
        tokens = replace(tokens, refresh=tokens.refresh or present.refresh)
        await in_db(_replace)(present.row, tokens)
        return await self._read_signed_in()


def _stored(server_id: UUID, origin: str) -> Generation | None:
    """Return the stored tokens of a sign-in; None if nobody is signed in. Raises: Unreadable"""
    row = signed_in(server_id).first()
    if row is None:
        return None
    if row.origin != origin:
        raise Unreadable("The server's address has changed since the sign-in: sign in again.")
    access, refresh = ("", "") if row.problem else clients.unseal(row.tokens, "tokens", server_id, origin)
    return Generation(row, clients.of(row), access, refresh, row.renewed_at or timezone.now())


def _claim(server_id: UUID, number: int, who: str) -> bool:
    """Return whether `who` got the lease to renew this generation. Refresh tokens are often valid only once."""
    row = SignIn.objects.filter(pk=server_id, generation=number, tokens__gt="")
    free = row.filter(renewing_until=None) | row.filter(renewing_until__lt=Now())
    # Further ahead than a lease can reach: the clock was set back since.
    free |= row.filter(renewing_until__gt=Now() + LEASE + SLACK)
    return free.update(renewing_by=who, renewing_until=Now() + LEASE) == 1


def _replace(before: SignIn, tokens: Tokens) -> None:
    """Store the next generation, unless somebody has signed in again, or out, in the meantime."""
    row = signed_in(before.pk).filter(generation=before.generation, origin=before.origin)
    scopes = {} if tokens.scopes is None else {"scopes_granted": storable(tokens.scopes)}
    row.update(generation=before.generation + 1, **columns(tokens, before.pk, before.origin), **scopes)


def _lacks(server_id: UUID, scopes: str) -> None:
    """Note the missing rights for which a call was refused."""
    row = signed_in(server_id).first()
    if row is None:
        return
    lacking = " ".join(dict.fromkeys([*row.lacking.split(), *storable(scopes).split()]))
    if lacking != row.lacking and len(lacking) <= MOST_LACKING:
        SignIn.objects.filter(pk=server_id, mark=row.mark).update(lacking=lacking)
