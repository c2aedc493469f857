"""An ASGI application under Daphne on a port of its own, until standard input ends: what the floors are measured on."""

import socket
import sys
import threading
from typing import Any

from daphne.server import Server, reactor


def serve(application: Any) -> None:
    """Print the port once it listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]

    def end() -> None:
        sys.stdin.read()
        reactor.callFromThread(reactor.stop)

    threading.Thread(target=end, daemon=True).start()
    server = Server(
        application=application,
        endpoints=[f"tcp:{port}:interface=127.0.0.1"],
        signal_handlers=False,
        ready_callable=lambda: print(port, flush=True),
    )
    server.run()
