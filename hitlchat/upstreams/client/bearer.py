"""A token that goes with every request to one place, and is renewed when it runs out or is not taken any more."""

from collections.abc import AsyncGenerator, Generator
from typing import Protocol

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth

from hitlchat.upstreams.client.exchange import CURRENT, short
from hitlchat.upstreams.client.spec import Masking, ServerSpec, Surroundings

# Of a request that must not be sent: why.
NO_TOKEN = "hitlchat.no_token"  # noqa: S105  names it, and is none


class NoToken(Exception):
    """There is none to send; why, in words. `http_status` 401: someone has to sign in; None: it may come by itself."""

    def __init__(self, reason: str, http_status: int | None = None) -> None:
        super().__init__(reason)
        self.http_status = http_status


class Tokens(Protocol):
    """Where the token comes from."""

    def hidden(self) -> tuple[str, ...]:
        """Everything secret that it has seen so far; the same object as long as that is the same."""

    async def current(self) -> str:
        """The token to send; empty if requests go without. NoToken."""

    async def renewed(self, refused: str) -> str:
        """Another one than that, which the server has just refused. NoToken."""

    async def lacks(self, scopes: str) -> None:
        """The server did not do something for want of these rights."""


class Bearer(httpx2.Auth):
    def __init__(self, tokens: Tokens, url: str) -> None:
        self._tokens, self._origin = tokens, _origin(httpx2.URL(url))

    def hidden(self) -> tuple[str, ...]:
        return self._tokens.hidden()

    def sync_auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        raise NotImplementedError("tokens are only sent asynchronously")

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if _origin(request.url) != self._origin:
            yield request
            return
        try:
            token = await self._tokens.current()
            response = yield _with(request, token)
            if response.status_code == 401 and token:
                response = yield _with(request, await self._tokens.renewed(token))
        except NoToken as why:
            yield _without(request, why)
            return
        if response.status_code == 401 and token:
            yield _without(request, NoToken("the server does not take the sign-in, although it is a new one", 401))
        elif response.status_code == 403:
            await self._forbidden(response)

    async def _forbidden(self, response: httpx2.Response) -> None:
        if extract_field_from_www_auth(response, "error") != "insufficient_scope":
            return
        scopes = short(extract_field_from_www_auth(response, "scope") or "", 300)
        if scopes:
            await self._tokens.lacks(scopes)
        if exchange := CURRENT.get():
            wanted = f" (it asks for {scopes})" if scopes else ""
            exchange.lose(f"the sign-in does not give the right to do this{wanted}")


class ConnectionMask:
    """Hides what is secret in a connection, also what becomes so while it lasts."""

    def __init__(self, surroundings: Surroundings, spec: ServerSpec, auth: httpx2.Auth | None) -> None:
        self._make, self._fixed = surroundings.mask, spec.hidden
        self._bearer = auth if isinstance(auth, Bearer) else None
        self._hidden: tuple[str, ...] = ()
        self._mask = self._make(self._fixed)

    def text(self, text: str) -> str:
        return self._now().text(text)

    def value(self, value: object) -> object:
        return self._now().value(value)

    def _now(self) -> Masking:
        hidden = self._bearer.hidden() if self._bearer else ()
        if hidden is not self._hidden:
            self._hidden, self._mask = hidden, self._make((*self._fixed, *hidden))
        return self._mask


def _with(request: httpx2.Request, token: str) -> httpx2.Request:
    if token:
        request.headers["Authorization"] = f"Bearer {token}"
    return request


def _without(request: httpx2.Request, why: NoToken) -> httpx2.Request:
    request.extensions = {**request.extensions, NO_TOKEN: why}
    return request


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host.lower(), url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
