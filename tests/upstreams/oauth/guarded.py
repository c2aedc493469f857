"""An MCP server that asks for a sign-in, and the authorization server that gives it: the SDK's own, in a thread.

What it answers at a path can be replaced, so that it means no good.
"""

import asyncio
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import build_metadata
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.ports import free_port
from tests.waiting import until

SCOPES = ["notes.read", "notes.write", "admin", "offline_access"]
REGISTRATION = ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES, default_scopes=["notes.read"])


@dataclass
class Heard:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Guarded(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """`answers` replace those at their paths; `heard`: every request. Tokens live for `seconds`; of `given` each is one
    that was handed out; `gives` are the rights that a renewed token has, and getting one takes `refresh_seconds`.
    """

    port: int
    seconds: int = 3600
    gives: list[str] | None = None
    refreshes: int = 0
    refresh_seconds: float = 0.0
    calls: list[str] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    answers: dict[str, Response | ASGIApp] = field(default_factory=dict)
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    def asked(self, path: str) -> list[Heard]:
        return [each for each in self.heard if each.path == path]

    def metadata(self) -> dict[str, Any]:
        """What the authorization server says of itself."""
        found = build_metadata(AnyHttpUrl(self.url), None, REGISTRATION, RevocationOptions(enabled=True))
        return found.model_dump(mode="json", exclude_none=True)

    def end_access(self) -> None:
        """No access token that was given is good any more."""
        self.access.clear()

    def end_all(self) -> None:
        self.access.clear()
        self.refresh.clear()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        if self.codes.pop(authorization_code.code, None) is None:
            raise TokenError("invalid_grant")
        return self._give(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refreshes += 1
        await asyncio.sleep(self.refresh_seconds)
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self._give(client.client_id, self.gives or scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        return found if found and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.end_all()

    def _give(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_urlsafe(24)}", f"refresh-{secrets.token_urlsafe(24)}"
        ends = int(time.time()) + self.seconds
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=ends, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        self.given += [access, refresh]
        return OAuthToken(access_token=access, expires_in=self.seconds, scope=" ".join(scopes), refresh_token=refresh)


@dataclass
class _Listening:
    """In front of the SDK's application: writes down what comes, and answers in its place where that is wanted."""

    guarded: Guarded
    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = b""
        if scope["method"] == "POST":
            body = await Request(scope, receive).body()
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.guarded.heard.append(Heard(scope["method"], scope["path"], headers, body))
        answer: ASGIApp = self.guarded.answers.get(scope["path"], self.app)
        await answer(scope, _again(body, receive), send)


def _again(body: bytes, receive: Receive) -> Receive:
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Any:
        return messages.pop(0) if messages else await receive()

    return received


def _application(guarded: Guarded) -> ASGIApp:
    auth = AuthSettings(
        issuer_url=AnyHttpUrl(guarded.url),
        resource_server_url=AnyHttpUrl(guarded.mcp),
        validate_token_resource=True,
        required_scopes=["notes.read"],
        client_registration_options=REGISTRATION,
        revocation_options=RevocationOptions(enabled=True),
    )
    server = MCPServer("guarded", version="1", auth_server_provider=guarded, auth=auth)

    @server.tool()
    def note(text: str = "nothing") -> str:
        """Write a note down, and say what came of it."""
        guarded.calls.append(text)
        # It must not, but it may.
        return f"{text}: {' '.join(guarded.given)}"

    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return server.streamable_http_app(transport_security=security)


@contextmanager
def guarded_server() -> Iterator[Guarded]:
    guarded = Guarded(free_port())
    app = _Listening(guarded, _application(guarded))
    config = uvicorn.Config(
        app, port=guarded.port, log_level="critical", timeout_graceful_shutdown=1, lifespan="on", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started, "the server has started")
    try:
        yield guarded
    finally:
        server.should_exit = True
        thread.join(40)
