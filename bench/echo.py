"""The bare websocket: Daphne and nothing behind it. Sends back what it gets; for "N", N frames of one token each.

`python -m bench.echo` prints its port and serves until its input ends.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from bench.daphne_alone import serve
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
    serve(application)


if __name__ == "__main__":
    main()
