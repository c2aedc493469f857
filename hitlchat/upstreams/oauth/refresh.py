"""The token of one connection: kept in memory while it is good, renewed before it ends and when it is refused."""

import asyncio
import logging
from collections import deque
from contextvars import Context
from datetime import timedelta
from uuid import UUID, uuid4

import httpx2
from django.utils import timezone

from hitlchat.base.database import in_db
from hitlchat.upstreams import models
from hitlchat.upstreams.client import Bearer, NoToken
from hitlchat.upstreams.models import Transport, UpstreamServer
from hitlchat.upstreams.oauth import token_store
from hitlchat.upstreams.oauth.clients import Unreadable
from hitlchat.upstreams.oauth.discovery import Bounds, NoAnswer, NotPossible, bounds_of
from hitlchat.upstreams.oauth.token_store import Held, Tokens

logger = logging.getLogger(__name__)

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
        """Nothing was sent."""


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
        await in_db(token_store.lacks)(self._server_id, scopes)

    async def _read(self) -> Held | None:
        """Return what is kept now. NoToken: it is of no use."""
        try:
            held = await in_db(token_store.read)(self._server_id, self._origin)
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
        """The next generation, asked for once by all who need it; nobody who gives up cuts that short."""
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
        """Return what there is while the authorization server does not answer."""
        return NoToken(f"the sign-in could not be renewed: {self._trouble}") if held.is_over else held

    async def _renewed_by_one(self, held: Held) -> Held:
        """Renew it here, or by the process that has begun to. Raises: NoToken, NoAnswer."""
        who, end = uuid4().hex, asyncio.get_running_loop().time() + WAIT_SECONDS
        while not await in_db(token_store.claim)(self._server_id, held.generation, who):
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
            await in_db(token_store.release)(self._server_id, who)

    async def _replaced(self, held: Held) -> Held:
        try:
            asked = {"refresh_token": held.tokens.refresh, "resource": held.resource}
            fresh = await token_store.renewed(held.client, held.endpoint, self._bounds, **asked)
        except NoAnswer:
            raise
        except NotPossible as error:
            logger.warning("The sign-in at an upstream server could not be renewed: %s", error)
            await in_db(token_store.spoil)(self._server_id, held.generation, f"It could not be renewed. {error}")
            self._held = None
            raise NoToken(f"the sign-in could not be renewed: {error}", 401) from error
        # Some give no new refresh token: the old one stays good.
        tokens = Tokens(fresh.access, fresh.refresh or held.tokens.refresh, fresh.scopes, fresh.expires_at)
        await in_db(token_store.replace)(self._server_id, self._origin, held, tokens)
        now = await self._read()
        if now is None:
            raise NoToken("nobody is signed in any more", 401)
        return now


def _or_raise(outcome: Held | NoToken) -> Held:
    if isinstance(outcome, NoToken):
        raise NoToken(str(outcome), outcome.http_status)
    return outcome
