"""The composition root of the server: the routes of protocols, and the work beside requests."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator, WebsocketDenier
from django.conf import settings
from django.db import DatabaseError
from django.urls import re_path
from django.utils.module_loading import import_string

from hitlchat import handler

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitlchat.settings")
django_application = handler.get_application()

from hitlchat import running, sandbox  # noqa: E402
from hitlchat.agent import conversations, runner, second  # noqa: E402
from hitlchat.agent.attachments import keeping as attachments  # noqa: E402
from hitlchat.agent.demo_model.server import demo_model  # noqa: E402
from hitlchat.agent.model_client import DEMO_PATH, own_address  # noqa: E402
from hitlchat.approvals.inbox.socket import websocket_urlpatterns as of_inbox  # noqa: E402
from hitlchat.base import scratch  # noqa: E402
from hitlchat.base.background import background  # noqa: E402
from hitlchat.base.database import in_db  # noqa: E402
from hitlchat.chat.consumers import OwnOriginOnly, doorkeeper  # noqa: E402
from hitlchat.chat.consumers import websocket_urlpatterns as of_chat  # noqa: E402
from hitlchat.gate import planted, tools  # noqa: E402
from hitlchat.gate.loosening import record_settings  # noqa: E402
from hitlchat.mcp_server import server as mcp  # noqa: E402
from hitlchat.mcp_server import submissions  # noqa: E402
from hitlchat.mcp_server.inspector import end_all as end_inspector_sessions  # noqa: E402
from hitlchat.notices import delivery as notices  # noqa: E402
from hitlchat.record import sealing as record  # noqa: E402
from hitlchat.upstreams import connections  # noqa: E402

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

LARGEST_BODY: Final = 20 * 2**20
TOO_LARGE: Final = (
    f"The request is larger than {LARGEST_BODY // 2**20} MiB, the most that this server accepts. Send a smaller file.\n"
).encode()
PING: Final = "ping"
PONG: Final = {"type": "websocket.send", "text": "pong"}


class Household:
    """Starts the sweeper with the first event of the server's loop, whatever server it is, and ends it cleanly."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._traces: Any = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            background.adopt(loop)
            if settings.OTEL_EXPORTER_OTLP_ENDPOINT:
                self._traces = import_string("hitlchat.telemetry.traces.Traces")()
            own = (
                runner.heartbeat(),
                runner.sweeper(),
                conversations.cleaner(),
                attachments.sweeper(),
                second.worker(),
                doorkeeper(),
                planted.worker(),
            )
            workers = (*own, submissions.lease_worker(), running.worker())
            work = (*(each.work for each in workers), connections.serve, notices.deliver, record.work)
            self._tasks = [loop.create_task(begin()) for begin in work]
            # Folders that killed servers left.
            self._tasks.append(loop.create_task(asyncio.to_thread(scratch.sweep)))

    async def end(self) -> None:
        """Hand runs back, let executing calls end, close all workers. Nothing new is started afterwards."""
        for task in self._tasks:
            task.cancel()
        await runner.let_go()
        end_inspector_sessions()
        # Else others would count calls that still execute here as lost.
        beating = asyncio.create_task(runner.heartbeat().work())
        await background.drain(settings.DRAIN_SECONDS)
        beating.cancel()
        await mcp.mcp_application.end()
        background.adopt(None)
        await connections.end()
        await handler.threads.close()
        await record.seal_rest()
        # Without a database the lease lapses by itself.
        with suppress(DatabaseError):
            await in_db(running.end)()
        await sandbox.close()
        if self._traces is not None:
            await asyncio.to_thread(self._traces.end)
        self._loop, self._traces = None, None


household = Household()


async def http(scope: Scope, receive: Receive, send: Send) -> None:
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if length.isdigit() and (len(length) > 18 or int(length) > LARGEST_BODY):
        await _refuse_large(send)
        return
    path, counted = scope["path"], Counted(receive, send)
    application: Application = demo_model if path.startswith(f"{DEMO_PATH}/") else django_application
    if path.rstrip("/") == mcp.PATH:
        application = mcp.application
    await application(scope, counted.receive, counted.send)


class Counted:
    """Counts a body that does not say its length: one that is too large is refused while it arrives."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._size = 0

    async def send(self, event: Any) -> None:
        # The application's answer is dropped after the refusal.
        if self._size <= LARGEST_BODY:
            await self._send(event)

    async def receive(self) -> Any:
        event = await self._receive()
        before, self._size = self._size, self._size + len(event.get("body") or b"")
        if self._size <= LARGEST_BODY:
            return event
        if before <= LARGEST_BODY:
            await _refuse_large(self._send)
        # This ends the request for the application.
        return {"type": "http.disconnect"}


async def _refuse_large(send: Send) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(TOO_LARGE)).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": TOO_LARGE})


class Heartbeat:
    """Answers each ping of a websocket at once, however long `application` takes for earlier messages.

    By the answer a page sees that its connection is alive, and that its earlier messages have arrived.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        arrived: asyncio.Queue[Any] = asyncio.Queue()

        async def read() -> None:
            event: dict[str, Any] = {}
            while event.get("type") != "websocket.disconnect":
                event = await receive()
                if event.get("text") == PING:
                    await send(PONG)
                else:
                    arrived.put_nowait(event)

        reading = asyncio.create_task(read())
        try:
            await self._application(scope, arrived.get, send)
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


async def lifespan(_scope: Scope, receive: Receive, send: Send) -> None:
    """Servers that have it (Daphne does not) tell of their end by it."""
    while True:
        event = await receive()
        if event["type"] == "lifespan.startup":
            household.start()
            await in_db(running.renew)()
            await in_db(record_settings)()
            await in_db(tools.begin_record)()
            await send({"type": "lifespan.startup.complete"})
        elif event["type"] == "lifespan.shutdown":
            await household.end()
            await send({"type": "lifespan.shutdown.complete"})
            return


# The last one refuses unknown paths.
sockets = [*of_chat, *of_inbox, re_path("", WebsocketDenier.as_asgi())]
pages = AuthMiddlewareStack(URLRouter(sockets))
protocols = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": AllowedHostsOriginValidator(OwnOriginOnly(Heartbeat(pages))),
        "lifespan": lifespan,
    }
)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "lifespan":
        household.start()
        host, port = scope.get("server") or ("", None)
        if port:
            own_address.learn(host, port)
    await protocols(scope, receive, send)
