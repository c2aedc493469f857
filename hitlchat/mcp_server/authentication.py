"""Authentication at /mcp: a known host, origin and token with every request; streams end when their token does."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import django.db
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from hitlchat.accounts.models import Token
from hitlchat.base.database import in_db
from hitlchat.mcp_server import tokens

# In a request's scope: its Access, and an event that is set once its client is gone.
ACCESS = "hitlchat.access"
GONE = "hitlchat.gone"
CHECK_SECONDS = 1.0

Asgi = Callable[[Any, Any, Any], Awaitable[None]]
# Done once the token of a request opens nothing any more.
Revoked: TypeAlias = "asyncio.Future[None]"

logger = logging.getLogger(__name__)


class Authentication:
    """Lets in valid tokens from a known host and origin, and looks once a second for those that were revoked."""

    def __init__(self, application: Asgi) -> None:
        self._application = application
        self._loop: asyncio.AbstractEventLoop | None = None
        # The requests that go on, by what ends them, with the id of the token of each.
        self._open: dict[Revoked, int] = {}
        self._watch: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if refusal := _wrong_host_or_origin(scope):
            await refuse(send, *refusal)
            return
        credentials = [value.split(" ", 1) for value in _values(scope, b"authorization")]
        is_bearer = len(credentials) == 1 and len(credentials[0]) == 2 and credentials[0][0].lower() == "bearer"
        access = await in_db(tokens.find)(credentials[0][1].strip()) if is_bearer else None
        if access is None:
            why = "Send a token of kind mcp as “Authorization: Bearer …”: there was none, or it is not valid here."
            await refuse(send, 401, why)
            return
        # The SDK gives a session to whoever began it, and to nobody else: two tokens are two owners.
        holder = AccessToken(token="", client_id=f"token:{access.token_id}", scopes=[], subject=str(access.user_id))
        user = AuthenticatedUser(holder)
        with self._entered(access.token_id) as void:
            # To the application it looks as if the client left once the token is void.
            exchange = _Exchange(void, receive, send)
            admitted = {**scope, "user": user, ACCESS: access, GONE: exchange.gone}
            await self._application(admitted, exchange.receive, exchange.send)
            if void.done():
                await exchange.end()

    @contextmanager
    def _entered(self, token_id: int) -> Iterator[Revoked]:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._open, self._watch = loop, {}, None
        requests, void = self._open, loop.create_future()
        requests[void] = token_id
        if self._watch is None or self._watch.done():
            self._watch = loop.create_task(self._check(requests))
        try:
            yield void
        finally:
            del requests[void]

    async def _check(self, requests: dict[Revoked, int]) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if not requests:
                return
            try:
                looked_for = {*requests.values()}
                rows = Token.valid().filter(pk__in=looked_for).values_list("pk", flat=True)
                invalid = looked_for - {*await in_db(list)(rows)}
            except django.db.Error:
                logger.exception("Checking for revoked tokens failed; the server will try again")
                continue
            for void, token_id in requests.items():
                if token_id in invalid and not void.done():
                    void.set_result(None)


async def refuse(send: Any, status: int, error: Any, **more: Any) -> None:
    """Answer with a JSON object that says why nothing was done."""
    body = json.dumps({**more, "error": error}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="hitlchat", error="invalid_token"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def is_stream(event: Any) -> bool:
    headers = {name.lower(): value for name, value in event.get("headers", ())}
    return bool(headers.get(b"content-type", b"").startswith(b"text/event-stream"))


class _Exchange:
    """One request and its answer. `gone` is set once its client has left, or its token is `void`."""

    def __init__(self, void: Revoked, receive: Any, send: Any) -> None:
        self.gone = asyncio.Event()
        self._void, self._receive, self._send = void, receive, send
        self._begun = self._ended = False

    async def receive(self) -> Any:
        event = {"type": "http.disconnect"}
        if not self._void.done():
            first = asyncio.ensure_future(self._receive())
            try:
                await asyncio.wait({first, self._void}, return_when=asyncio.FIRST_COMPLETED)
                event = event if self._void.done() else await first
            finally:
                first.cancel()
                with suppress(asyncio.CancelledError):
                    await first
        if event["type"] == "http.disconnect":
            self.gone.set()
        return event

    async def send(self, event: Any) -> None:
        self._begun = self._begun or event["type"] == "http.response.start"
        self._ended = self._ended or (event["type"] == "http.response.body" and not event.get("more_body"))
        await self._send(event)
        if event["type"] == "http.response.start" and is_stream(event):
            # Daphne keeps the head of a response until there is some of its body, which a stream may not have for long.
            await self._send({"type": "http.response.body", "body": b"", "more_body": True})

    async def end(self) -> None:
        if self._begun and not self._ended:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})


def _wrong_host_or_origin(scope: Any) -> tuple[int, str] | None:
    """Return why the request is refused: a page elsewhere must not reach us through a browser (DNS rebinding)."""
    hosts, origins = ([value.lower() for value in _values(scope, name)] for name in (b"host", b"origin"))
    if len(hosts) != 1 or not validate_host(split_domain_port(hosts[0])[0], settings.ALLOWED_HOSTS):
        return 421, "The Host header is not one of ALLOWED_HOSTS."
    trusted = settings.CSRF_TRUSTED_ORIGINS
    if any(origin.partition("://")[2] != hosts[0] and origin not in trusted for origin in origins):
        return 403, "The Origin header is neither this server nor one of CSRF_TRUSTED_ORIGINS."
    return None


def _values(scope: Any, name: bytes) -> list[str]:
    return [value.decode("latin-1") for header, value in scope["headers"] if header.lower() == name]
