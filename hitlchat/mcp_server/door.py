"""Who is let in to /mcp: the right host and origin, and a token of kind “mcp”, looked at with every request."""

import json
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from hitlchat.base.database import in_db
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.streams import Asgi, Streams
from hitlchat.mcp_server.tokens import Access

# Where a request's Access stands in its scope.
ACCESS = "hitlchat.access"
# And an event that is set once its client is gone.
GONE = "hitlchat.gone"
CHALLENGE = b'Bearer realm="hitlchat", error="invalid_token"'


class Door:
    def __init__(self, application: Asgi) -> None:
        self._application = application
        self._streams = Streams()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if said := _misled(scope):
            await refuse(send, *said)
            return
        access = await _access(scope)
        if access is None:
            why = "Send a token of kind mcp as “Authorization: Bearer …”: there was none, or it is not valid here."
            await refuse(send, 401, why)
            return
        # The SDK gives a session to whoever began it, and to nobody else: two tokens are two owners.
        told = AccessToken(token="", client_id=f"token:{access.token_id}", scopes=[], subject=str(access.user_id))
        known = {**scope, "user": AuthenticatedUser(told), ACCESS: access}
        await self._streams.serve(self._application, access.token_id, known, receive, send)


def _misled(scope: Any) -> tuple[int, str] | None:
    """A page elsewhere must not reach us through a browser that can, under whatever name (DNS rebinding)."""
    hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
    if len(hosts) != 1 or not validate_host(split_domain_port(hosts[0])[0], settings.ALLOWED_HOSTS):
        return 421, "The Host is not one of ALLOWED_HOSTS."
    if any(not _is_own(origin, hosts[0]) for origin in origins):
        return 403, "The Origin is not this server, and not one of CSRF_TRUSTED_ORIGINS."
    return None


def _is_own(origin: str, host: str) -> bool:
    return origin.partition("://")[2] == host or origin in settings.CSRF_TRUSTED_ORIGINS


async def _access(scope: Any) -> Access | None:
    shown = [value.split(" ", 1) for value in _values(scope, b"authorization", lower=False)]
    if len(shown) != 1 or len(shown[0]) != 2 or shown[0][0].lower() != "bearer":
        return None
    return await in_db(tokens.find)(shown[0][1].strip())


def _values(scope: Any, name: bytes, *, lower: bool = True) -> list[str]:
    found = [value.decode("latin-1") for header, value in scope["headers"] if header.lower() == name]
    return [value.lower() for value in found] if lower else found


async def refuse(send: Any, status: int, why: str) -> None:
    body = json.dumps({"error": why}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", CHALLENGE))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
