"""The server: Daphne with bounded requests, and clients that take nothing of what is sent to them given up in time.

Whoever sends waits for such a client, and not for ever: Daphne alone keeps in memory whatever is sent.
"""

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Coroutine
from contextvars import Context
from types import SimpleNamespace
from typing import Any

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server, reactor, twisted_loop
from daphne.ws_protocol import WebSocketProtocol
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from twisted.internet import defer
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer  # type: ignore[import-untyped]

from hitlchat import health, running
from hitlchat.accounts import sign_in
from hitlchat.agent.model_client import own_address
from hitlchat.asgi import LARGEST_BODY, TOO_LARGE, application, household
from hitlchat.base import configuration, environment
from hitlchat.gate import tools
from hitlchat.gate.loosening import record_settings
from hitlchat.project_tools.source import keep_in_step
from tools_studio.library.install import install

# They explain every setting.
TABLES = (settings.BASE_DIR / "README.md", settings.BASE_DIR / "docs" / "operating.md")
CLOSE_RESTARTING = 1012
CLOSE_TOO_BIG = 1009
LARGEST_MESSAGE = 2**20
HANDSHAKE_SECONDS = 20
# A refused body that is hardly larger is read to its end, and dropped, so that its client reads why.
LINGER_SECONDS = 30
MOST_READ = LARGEST_BODY * 3 // 2
# In place of the application of a request that has none or became a websocket: Daphne's shutdown expects one.
NEVER_STARTED = SimpleNamespace(done=lambda: True)
REFUSAL = (
    b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(TOO_LARGE), TOO_LARGE)
)
# So many objects more than at the last look, and Python looks for garbage among the new ones. Its own 700 make it look
# all the time: one turn of a conversation makes more.
NEW_OBJECTS = 10_000
# Also ends what was sent whole and is never read. Not every system has it.
USER_TIMEOUT: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)

logger = logging.getLogger(__name__)


@implementer(IPushProducer)
class Outflow(asyncio.Event):
    """Set while a connection takes more, as Twisted says; also once it is lost, as there is nothing to wait for."""

    pauseProducing = asyncio.Event.clear  # noqa: N815
    resumeProducing = stopProducing = asyncio.Event.set  # noqa: N815


class BoundedRequest(WebRequest):  # type: ignore[misc]
    """Refuses a body that is too large while it arrives. Daphne reads it all first, and the application asks later.

    The answer is written as fast as its client reads.
    """

    _is_refused = False
    _size = 0
    _outflow: Outflow | None = None

    def handle_reply(self, message: dict[str, Any]) -> None:
        if self._outflow is None and message["type"] == "http.response.start" and self.channel is not None:
            self._outflow = Outflow()
            self._outflow.set()
            self.registerProducer(self._outflow, streaming=True)
            handle = self.channel.transport.getHandle()
            if USER_TIMEOUT is not None and isinstance(handle, socket.socket):
                handle.setsockopt(socket.IPPROTO_TCP, USER_TIMEOUT, settings.STALL_SECONDS * 1000)
        super().handle_reply(message)

    def finish(self) -> None:
        if self._outflow is not None and self.channel is not None:
            self.unregisterProducer()
        super().finish()

    async def drained(self) -> None:
        """Wait until the client may be sent more; one that takes nothing is given up."""
        if self._outflow is None or self.finished or self.channel is None or self._outflow.is_set():
            return
        try:
            await asyncio.wait_for(self._outflow.wait(), settings.STALL_SECONDS)
        except TimeoutError:
            if self.channel is not None:
                self.channel.forceAbortClient()

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        super().gotLength(length)
        if (length or 0) > LARGEST_BODY:
            self._refuse()
        if (length or 0) > MOST_READ:
            self.channel.loseConnection()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        """Count a piece of the body: chunks come here too, which do not say how many there will be."""
        self._size += len(data)
        if not self._is_refused:
            super().handleContentChunk(data)
            if self._size > LARGEST_BODY:
                self._refuse()
        elif self._size > MOST_READ:
            self.channel.loseConnection()

    def process(self) -> Any:
        return None if self._is_refused else super().process()

    def handle_exception(self, exception: BaseException) -> None:
        """Break off an answer that fails after it began: its client must not wait for more, nor take it for whole."""
        if not self._response_started:
            super().handle_exception(exception)
        elif self.channel is not None:
            self.channel.forceAbortClient()

    def _refuse(self) -> None:
        """Answer at once and wait for a while until the client closes: a socket closed over unread bytes takes the
        answer away from a client that still writes, which may be a proxy.
        """
        self._is_refused = True
        transport = self.channel.transport
        transport.write(REFUSAL)
        transport.loseWriteConnection()
        reactor.callLater(LINGER_SECONDS, transport.abortConnection)


class BoundedFactory(HTTPFactory):  # type: ignore[misc]
    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = BoundedRequest
        return protocol


class BoundedWebSocket(WebSocketProtocol):  # type: ignore[misc]
    """Autobahn looks at the size of a frame only once the handshake is over; until then it keeps all that comes."""

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if self.state == self.STATE_CONNECTING and len(self.data) + len(data) > LARGEST_MESSAGE:
            self._fail_connection(CLOSE_TOO_BIG, "too much data before the handshake ended")
        else:
            super().dataReceived(data)


class GracefulServer(Server):  # type: ignore[misc]
    """Daphne, with bounds for what a client may send, and with a shutdown that reaches every connection (that of 4.2.3
    stops at the first upgraded one with a KeyError).
    """

    # `run` of Daphne makes both factories and starts to listen in one go: here they are exchanged as they are set.
    @property
    def http_factory(self) -> BoundedFactory:
        return self._http_factory

    @http_factory.setter
    def http_factory(self, _made: HTTPFactory) -> None:
        self._http_factory = BoundedFactory(self)

    @property
    def ws_factory(self) -> Any:
        return self._ws_factory

    @ws_factory.setter
    def ws_factory(self, made: Any) -> None:
        made.protocol = BoundedWebSocket
        self._ws_factory = made

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        await super().handle_reply(protocol, message)
        if isinstance(protocol, BoundedRequest):
            await protocol.drained()

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Return the queue of a new application; None for a request that was still arriving as the server ended."""
        ends = self.connections[protocol].get("application_instance") is NEVER_STARTED
        # In an empty context, as nothing of an earlier request that came over this connection belongs to it.
        return None if ends else Context().run(super().create_application, protocol, scope)

    def kill_all_applications(self) -> Any:
        for connection in self.connections.values():
            if not connection.get("application_instance"):
                connection["application_instance"] = NEVER_STARTED
        return super().kill_all_applications()

    def say_goodbye(self) -> None:
        """Tell every open page that the server restarts, so that it reconnects by itself."""
        for protocol in list(self.connections):
            if hasattr(protocol, "serverClose") and protocol.state == protocol.STATE_OPEN:
                protocol.sendCloseFrame(code=CLOSE_RESTARTING)


def _prepare() -> None:
    """Do what must be done before the event loop runs, since it uses the synchronous database."""
    if sentence := health.migration_fault()[1]:
        raise CommandError(sentence)
    file = settings.CONFIGURATION.file
    if not file.exists():
        # With all of them commented out. Packages may lack the pages.
        pages = [page.read_text(encoding="utf-8") for page in TABLES if page.exists()]
        environment.write_once(file, configuration.template(pages))
    for words in running.differences():
        logger.warning("A server runs here already, and this one differs. %s", words)
    running.renew()
    install()
    keep_in_step()
    record_settings()
    tools.begin_record()


def _begun_apart(work: Coroutine[Any, Any, None]) -> Any:
    """Begin `work` in an empty context: the reactor is told to stop in that of whatever it did last."""
    return twisted_loop.create_task(work, context=Context())


class Command(BaseCommand):
    _is_up = False
    _link: str | None = None
    help = "Serve hitlchat: pages, websockets, REST and the work behind them, in one process."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.HOST, help="the address to listen at (default: HOST)")
        parser.add_argument("--port", type=int, default=settings.PORT, help="the port to listen at (default: PORT)")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        _prepare()
        self._link = sign_in.make_link() if sign_in.needed() else None
        own_address.learn(host, port)
        endpoint = f"tcp:{port}:interface={host.replace(':', chr(92) + ':')}"
        server = GracefulServer(
            application=application,
            endpoints=[endpoint],
            signal_handlers=True,
            ping_interval=20,
            ping_timeout=30,
            # Five seconds are not enough for a busy server to see who asks; a page that is cut off asks again.
            websocket_handshake_timeout=HANDSHAKE_SECONDS,
            websocket_max_message_size=LARGEST_MESSAGE,
            websocket_max_frame_size=LARGEST_MESSAGE,
            server_name="hitlchat",
            ready_callable=self._welcome,
        )

        async def drain() -> None:
            server.say_goodbye()
            await household.end()

        async def begin() -> None:
            household.start()

        reactor.callWhenRunning(lambda: _begun_apart(begin()))
        reactor.addSystemEventTrigger("before", "shutdown", lambda: defer.Deferred.fromFuture(_begun_apart(drain())))
        server.run()
        if not self._is_up:
            raise CommandError(
                f"hitlchat cannot listen on {host}:{port}. If the port is taken, set PORT to another one."
            )

    def _welcome(self) -> None:
        self._is_up = True
        # What was imported stays. To look through it for garbage took a fifth of a second, while nobody was answered.
        gc.collect()
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS)
        shown = settings.HITL_PUBLIC_URL or own_address.url
        self.stdout.write(f"hitlchat is running as process {os.getpid()}. Ctrl+C stops it.")
        self.stdout.write(f"Its settings are in {settings.CONFIGURATION.file}")
        # The one address to open comes last, so that nobody picks another.
        if self._link is not None:
            self.stdout.write(f"Open this link to become the first administrator:\n\n  {shown}/welcome/{self._link}\n")
        else:
            self.stdout.write(f"\n  {shown}\n")
        self.stdout.flush()
