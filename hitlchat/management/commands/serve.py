from typing import Any

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server, reactor, twisted_loop
from daphne.ws_protocol import WebSocketProtocol
from django.core.management.base import BaseCommand, CommandError, CommandParser
from twisted.internet import defer

from hitlchat import health
from hitlchat.accounts import sign_in
from hitlchat.agent.model_client import own_address
from hitlchat.asgi import LARGEST_BODY, application, household
from hitlchat.base import environment as env
from hitlchat.gate.loosening import record_settings
from hitlchat.management.outflow import Patient
from hitlchat.project_tools.source import keep_in_step
from tools_studio.library.install import install

CLOSE_RESTARTING = 1012
CLOSE_TOO_BIG = 1009
LARGEST_MESSAGE = 2**20
HANDSHAKE_SECONDS = 20
TOO_LARGE = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class NeverStarted:
    """Stands in for the application of a request that has none or became a websocket: Daphne's shutdown expects one."""

    @staticmethod
    def done() -> bool:
        return True


class BoundedRequest(Patient, WebRequest):  # type: ignore[misc]
    """Refuses a body that is too large while it arrives. Daphne reads it all first, and the application asks later."""

    _is_refused = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        super().gotLength(length)
        if (length or 0) > LARGEST_BODY:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        """Count a piece of the body: chunks come here too, which do not say how many there will be."""
        if self._is_refused:
            return
        super().handleContentChunk(data)
        if self.content.tell() > LARGEST_BODY:
            self._refuse()

    def process(self) -> Any:
        return None if self._is_refused else super().process()

    def _refuse(self) -> None:
        self._is_refused = True
        self.channel.transport.write(TOO_LARGE)
        self.channel.loseConnection()


class BoundedFactory(HTTPFactory):  # type: ignore[misc]
    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = BoundedRequest
        return protocol


class BoundedWebSocket(WebSocketProtocol):  # type: ignore[misc]
    """Autobahn looks at the size of a frame only once the handshake is over; until then it keeps all that comes."""

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if self.state == self.STATE_CONNECTING and len(self.data) + len(data) > LARGEST_MESSAGE:
            self._fail_connection(CLOSE_TOO_BIG, "too much before the handshake was over")
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
            await protocol.taken()

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Return the queue of a new application; None for a request that was still arriving as the server ended."""
        ends = self.connections[protocol].get("application_instance") is NeverStarted
        return None if ends else super().create_application(protocol, scope)

    def kill_all_applications(self) -> Any:
        for connection in self.connections.values():
            if not connection.get("application_instance"):
                connection["application_instance"] = NeverStarted
        return super().kill_all_applications()

    def say_goodbye(self) -> None:
        """Tell every open page that the server restarts, so that it reconnects by itself."""
        for protocol in list(self.connections):
            if hasattr(protocol, "serverClose") and protocol.state == protocol.STATE_OPEN:
                protocol.sendCloseFrame(code=CLOSE_RESTARTING)


class Command(BaseCommand):
    _is_up = False
    _link: str | None = None
    help = "Serve hitlchat: pages, websockets, REST and the work behind them, in one process."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=env.text("HOST", "127.0.0.1"))
        parser.add_argument("--port", type=int, default=env.integer("PORT", 8000, most=65535))

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        # Before the event loop runs, since all of them use the synchronous database.
        if sentence := health.migration_fault()[1]:
            raise CommandError(sentence)
        install()
        keep_in_step()
        record_settings()
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
            ready_callable=lambda: self._welcome(host, port),
        )

        async def drain() -> None:
            server.say_goodbye()
            await household.end()

        async def begin() -> None:
            household.start()

        reactor.callWhenRunning(lambda: twisted_loop.create_task(begin()))
        reactor.addSystemEventTrigger(
            "before", "shutdown", lambda: defer.Deferred.fromFuture(twisted_loop.create_task(drain()))
        )
        server.run()
        if not self._is_up:
            raise CommandError(f"hitlchat cannot listen on {host}:{port}. Is the port taken? PORT chooses another one.")

    def _welcome(self, host: str, port: int) -> None:
        self._is_up = True
        shown = f"http://{host if ':' not in host else f'[{host}]'}:{port}"
        self.stdout.write(f"hitlchat is running at {shown}")
        if self._link is not None:
            self.stdout.write(f"Open this link once to become the first administrator:\n  {shown}/welcome/{self._link}")
        self.stdout.flush()
