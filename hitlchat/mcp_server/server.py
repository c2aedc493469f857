"""The MCP server as an ASGI application: limits and strict JSON stand before the SDK.

One token and one person may keep so many sessions and streams open. At the limit, a new one replaces their own oldest
idle session, never anybody else's.
"""

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as types
from django.conf import settings
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from hitlchat.base import canonical
from hitlchat.mcp_server.authentication import ACCESS, Asgi, Authentication, is_stream, refuse
from hitlchat.mcp_server.calling import call_tool
from hitlchat.mcp_server.listing import Audience, list_tools
from hitlchat.mcp_server.tokens import Access
from hitlchat.upstreams.endpoint import mark

PATH = "/mcp"
# Arguments may have 256 KiB, and JSON may spell a character in six.
LARGEST_BODY = 2 * 2**20
MOST_SESSIONS = 500
# The SDK closes a session that has had no request and no stream for as long as that.
IDLE_SECONDS = 300.0
# Reading what is longer takes long enough to keep others waiting.
SMALL = 64 * 1024
MOST_DIGITS = 18
NAME = "hitlchat"
INSTRUCTIONS = (
    "Some tools here run only after a person has approved the call. That may take minutes. If a call was declined, do"
    " not make it again for the same request; if it is said to wait, make the same call again later to get its outcome."
)
MOST_LISTENERS = 500

logger = logging.getLogger(__name__)


class McpServer(Server[Any]):
    """Tells clients of every revision that its list changes, and says which installation it belongs to."""

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,  # noqa: ARG002
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        *args: Any,
        **more: Any,
    ) -> types.ServerCapabilities:
        experimental = {**(experimental_capabilities or {}), **mark()}
        return super().get_capabilities(NotificationOptions(tools_changed=True), experimental, *args, **more)


def make_server() -> McpServer:
    audience = Audience()
    server = McpServer(
        NAME,
        version="1",
        title="hitlchat",
        instructions=INSTRUCTIONS,
        lifespan=lambda _: audience.watching(),
        # Else every call with arguments would read the whole list first, for headers that our schemas do not ask for.
        get_tool_input_schema=lambda _: None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=audience.listening(MOST_LISTENERS),
    )
    server.middleware.append(_hide_errors)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, audience.join)
    return server


def manager() -> StreamableHTTPSessionManager:
    return StreamableHTTPSessionManager(
        app=make_server(),
        max_request_body_size=LARGEST_BODY,
        max_sessions=MOST_SESSIONS,
        session_idle_timeout=IDLE_SECONDS,
    )


class McpApplication:
    """The SDK's manager, entered and left in one task of the loop that serves: Daphne has no hook for that."""

    def __init__(self, make: Callable[[], StreamableHTTPSessionManager]) -> None:
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready: asyncio.Future[Asgi] | None = None
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop or self._ready is None:
            self._loop, self._ready, self._over = loop, loop.create_future(), asyncio.Event()
            # Without the context of whoever happens to come first.
            self._task = loop.create_task(self._own(self._ready, self._over), context=contextvars.Context())
        application = await asyncio.shield(self._ready)
        await application(scope, receive, send)

    async def end(self) -> None:
        """Close all sessions, within bounded time."""
        if self._task is not None and not self._task.done() and self._loop is asyncio.get_running_loop():
            self._over.set()
            await asyncio.wait({self._task}, timeout=3.0)

    async def _own(self, ready: "asyncio.Future[Asgi]", over: asyncio.Event) -> None:
        try:
            made = self._make()
            async with made.run():
                ready.set_result(Limits(StrictJson(made.handle_request, LARGEST_BODY)))
                await over.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise
        finally:
            # A manager runs once: the next request begins with another one.
            if self._ready is ready:
                self._loop = None


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
        elif is_older or _header(scope, MCP_METHOD_HEADER) == "subscriptions/listen":
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
                with anyio.move_on_after(2.0):
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
        return (
            f"One {whose} may have {most} sessions and streams open at once, and none of this token's sessions is idle."
        )


class StrictJson:
    """Refuses a POST whose body is no strict JSON (duplicate keys, NaN) with 400; the SDK refuses one that is longer
    than `largest` bytes. What stands beside a no is dropped: the SDK would not take it in another shape.
    """

    def __init__(self, application: Asgi, largest: int) -> None:
        self._application, self._largest = application, largest

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        length = dict(scope["headers"]).get(b"content-length", b"")
        is_too_long = length.isdigit() and (len(length) > MOST_DIGITS or int(length) > self._largest)
        received = receive
        if scope["method"] == "POST" and not is_too_long:
            events, body = await self._read(receive)
            try:
                if body is not None:
                    plain = _plain(body) if len(body) <= SMALL else await asyncio.to_thread(_plain, body)
                    events = [{"type": "http.request", "body": plain, "more_body": False}]
            except canonical.NotJson as why:
                error = {"code": types.PARSE_ERROR, "message": f"Parse error: {why}"}
                await refuse(send, 400, error, jsonrpc="2.0", id=None)
                return
            left = iter(events)

            async def received() -> Any:
                event = next(left, None)
                return event if event is not None else await receive()

        await self._application(scope, received, send)

    async def _read(self, receive: Any) -> tuple[list[Any], bytes | None]:
        """Return what has come, and the body if it is all there."""
        events: list[Any] = []
        body = bytearray()
        while len(body) <= self._largest:
            events.append(event := await receive())
            if event["type"] != "http.request":
                return events, None
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        return events, bytes(body) if len(body) <= self._largest else None


async def _hide_errors(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """Hide errors from older clients, which would be told the text of whatever goes wrong here."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        logger.exception("%s over MCP failed", ctx.method[:64])
        raise MCPError(types.INTERNAL_ERROR, "An internal error in hitlchat; see its log.") from error


def _plain(body: bytes) -> bytes:
    """Return the body without the content that stands beside a no in it. Raises: NotJson"""
    message = canonical.loads(body)
    answers = [message.get("result")] if isinstance(message, dict) else []
    if isinstance(message, dict) and isinstance(params := message.get("params"), dict):
        responses = params.get("inputResponses")
        answers += responses.values() if isinstance(responses, dict) else []
    dropped = [
        answer
        for answer in answers
        if isinstance(answer, dict) and answer.get("action") in ("decline", "cancel") and "content" in answer
    ]
    for answer in dropped:
        for name in answer.keys() - {"action"}:
            del answer[name]
    return canonical.dumps(message).encode() if dropped else body


def _header(message: Any, name: str) -> str:
    return next((value.decode("latin-1") for key, value in message["headers"] if key.lower() == name.encode()), "")


async def _nothing(*_: Any) -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


mcp_application = McpApplication(manager)
application = Authentication(mcp_application)
