"""What a run asks of the server, and the answers as they come in. Used in a keeper."""

import asyncio
from itertools import count
from typing import Any

from hitlchat.sandbox.wire import Channel

Answer = dict[str, Any]


class Asked:
    """The questions of one run. An answer is `{"value": …}` or `{"error": [type, message]}`."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[Answer]] = {}

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Answer:
        """What the granted function `name` says to plain JSON arguments."""
        return await self._ask({"name": name, "args": args, "kwargs": kwargs})

    async def sleep(self, seconds: float) -> None:
        await self._ask({"sleep": seconds})

    def answered(self, message: dict[str, Any]) -> None:
        waiting = self._open.pop(message.pop("answer"), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def _ask(self, question: dict[str, Any]) -> Answer:
        number = next(self._numbers)
        self._open[number] = asyncio.get_running_loop().create_future()
        await self._channel.send({"call": number, **question})
        return await self._open[number]
