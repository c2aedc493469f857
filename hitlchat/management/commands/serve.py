from typing import Any

from daphne.server import Server, reactor, twisted_loop
from django.core.management.base import BaseCommand, CommandError, CommandParser
from twisted.internet import defer

from hitlchat import environment as env
from hitlchat.accounts import first_run
from hitlchat.agent.endpoint import own_address
from hitlchat.asgi import application, household
from tools_studio.library.install import install

CLOSE_RESTARTING = 1012


class NeverStarted:
    """Stands in for the application of a request that became a websocket: Daphne's shutdown expects one."""

    @staticmethod
    def done() -> bool:
        return True


class GracefulServer(Server):  # type: ignore[misc]
    """Daphne, with a shutdown that reaches every connection (4.2.3 stops at the first upgraded one with a KeyError)."""

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
        # Before the event loop runs, since both use the synchronous database.
        install()
        self._link = first_run.make_link() if first_run.needed() else None
        own_address.learn(host, port)
        endpoint = f"tcp:{port}:interface={host.replace(':', chr(92) + ':')}"
        server = GracefulServer(
            application=application,
            endpoints=[endpoint],
            signal_handlers=True,
            ping_interval=20,
            ping_timeout=30,
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
