"""The bare websocket: Daphne and nothing behind it. Sends back what it gets; for "N", N frames of one token each.

`python -m bench.echo` prints its port and serves until its input ends.
"""

import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from daphne.server import Server, reactor

from bench.model_server import token


async def application(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    assert scope["type"] == "websocket"
    while (event := await receive())["type"] != "websocket.disconnect":
        if event["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})
        elif (text := event["text"]).isdigit():
            for number in range(int(text)):
                await send({"type": "websocket.send", "text": token(number)})
        else:
            await send({"type": "websocket.send", "text": text})


def main() -> None:
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


if __name__ == "__main__":
    main()
