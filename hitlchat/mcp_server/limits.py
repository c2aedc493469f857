"""Limits at /mcp: how much one token and one person may keep open, sessions of older clients and streams.

Whoever has as much as that gives up their own oldest idle session for a new one. Nobody else's is touched.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import anyio
from django.conf import settings
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from hitlchat.mcp_server.authentication import ACCESS, Asgi, is_stream, refuse
from hitlchat.mcp_server.tokens import Access

# The SDK closes a session that has had no request and no stream for as long as that.
IDLE_SECONDS = 300.0
QUIET_SECONDS = 2.0
LISTEN = "subscriptions/listen"


@dataclass(eq=False)
class OpenSession:
    """A session that is open, or what ends with the request that opened it (`session` is empty)."""

    access: Access
    session: str = ""
    requests: int = 0
    # Of these, messages whose answer is no stream: the SDK may still be taking them in once they are answered.
    brief: int = 0
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    idle_since: float = field(default_factory=time.monotonic)
    replaces: "OpenSession | None" = None

    def count(self, brief: int) -> None:
        self.brief += brief
        if self.brief:
            self.quiet.clear()
        else:
            self.quiet.set()


class Limits:
    """Limits for each token, before the SDK's manager, which knows only one for all."""

    def __init__(self, manager: Asgi) -> None:
        self._manager = manager
        self._opened: set[OpenSession] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        access, version = scope[ACCESS], _header(scope, MCP_PROTOCOL_VERSION_HEADER)
        # As the SDK tells; the newer clients have no sessions.
        is_older = not version or version in HANDSHAKE_PROTOCOL_VERSIONS
        if is_older and (session := _header(scope, MCP_SESSION_ID_HEADER)):
            opened = next((each for each in self._of_token(access) if each.session == session), None)
        elif is_older or _header(scope, MCP_METHOD_HEADER) == LISTEN:
            opened = self._admit(access)
            if opened is None:
                await refuse(send, 429, self._full(access))
                return
        else:
            opened = None
        if opened is None:
            await self._manager(scope, receive, send)
        else:
            await self._serve(opened, scope, receive, send)

    def _admit(self, access: Access) -> OpenSession | None:
        """Admit what this request opens; None if all that may be open is, and nothing of it is idle."""
        now, opened = time.monotonic(), OpenSession(access)
        self._opened -= {each for each in self._opened if not each.requests and now - each.idle_since > IDLE_SECONDS}
        if self._full(access):
            idle = [each for each in self._of_token(access) if not each.requests]
            if not idle:
                return None
            opened.replaces = min(idle, key=lambda each: each.idle_since)
            self._opened.remove(opened.replaces)
        self._opened.add(opened)
        return opened

    async def _serve(self, opened: OpenSession, scope: Any, receive: Any, send: Any) -> None:
        brief = int(scope["method"] == "POST")

        async def tracked(event: Any) -> None:
            nonlocal brief
            if event["type"] == "http.response.start":
                self._track(opened, scope, event)
                if is_stream(event):
                    opened.count(-brief)
                    brief = 0
            await send(event)

        # Before anything is waited for: what has a request is not idle.
        opened.requests += 1
        opened.count(brief)
        try:
            await self._close_other(opened, scope)
            if scope["method"] == "DELETE":
                # A session that ends while the SDK takes in a message for it would log that as an error.
                with anyio.move_on_after(QUIET_SECONDS):
                    await opened.quiet.wait()
            await self._manager(scope, receive, tracked)
        finally:
            opened.requests -= 1
            opened.count(-brief)
            opened.idle_since = time.monotonic()
            if not opened.session:
                self._opened.discard(opened)

    async def _close_other(self, opened: OpenSession, scope: Any) -> None:
        """Close the session as its client would, with the credential that both have."""
        other, opened.replaces = opened.replaces, None
        if other is not None:
            headers = [(MCP_SESSION_ID_HEADER.encode(), other.session.encode()), (b"accept", b"*/*")]
            await self._manager({**scope, "method": "DELETE", "headers": headers}, _nothing, _nothing)

    def _track(self, opened: OpenSession, scope: Any, event: Any) -> None:
        status = event["status"]
        if not opened.session and status < 400:
            opened.session = _header(event, MCP_SESSION_ID_HEADER)
        elif status == 404 or (scope["method"] == "DELETE" and status < 400):
            self._opened.discard(opened)

    def _of_token(self, access: Access) -> list[OpenSession]:
        return [each for each in self._opened if each.access.token_id == access.token_id]

    def _full(self, access: Access) -> str:
        """Return why the token, or its person, may open no more; empty while they may."""
        whose, most = "token", settings.MCP_TOKEN_SESSIONS
        if len(self._of_token(access)) < most:
            whose, most = "person, with all their tokens,", settings.MCP_PERSON_SESSIONS
            if sum(each.access.user_id == access.user_id for each in self._opened) < most:
                return ""
        return f"One {whose} may have {most} sessions and streams open at once, and none that could be closed is idle."


def _header(message: Any, name: str) -> str:
    return next((value.decode("latin-1") for key, value in message["headers"] if key.lower() == name.encode()), "")


async def _nothing(*_: Any) -> dict[str, Any]:
    """Receive an empty body, or send to nobody."""
    return {"type": "http.request", "body": b"", "more_body": False}
