"""A line to PostgreSQL or Redis that can be held or cut for a moment, without touching the server behind it."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

CHUNK: Final = 65_536
SLACK_SECONDS: Final = 10.0
PORTS: Final = {"redis": 6379, "postgres": 5432, "postgresql": 5432}


class Line:
    """Listens on loopback and passes bytes on to the server of an address; `url` is the address by way of this line."""

    def __init__(self, address: str) -> None:
        there = urlsplit(address)
        self._server = (there.hostname or "127.0.0.1", there.port or PORTS[there.scheme])
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        port = self._do(self._listen(), 0)
        who, at, _ = there.netloc.rpartition("@")
        self.url = there._replace(netloc=f"{who}{at}127.0.0.1:{port}").geturl()

    @property
    def connections(self) -> int:
        return len(self._writers) // 2

    def hold(self, seconds: float) -> None:
        """Let nothing through for so long; what was sent meanwhile arrives afterwards."""
        self._do(self._hold(seconds), seconds)

    def cut(self, seconds: float) -> None:
        """Break all connections, and every new one for so long."""
        self._do(self._cut(seconds), seconds)

    def _do(self, task: Coroutine[Any, Any, Any], seconds: float) -> Any:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(seconds + SLACK_SECONDS)

    async def _listen(self) -> int:
        self._listening = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return int(self._listening.sockets[0].getsockname()[1])

    async def _hold(self, seconds: float) -> None:
        self._flows.clear()
        await asyncio.sleep(seconds)
        self._flows.set()

    async def _cut(self, seconds: float) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(seconds)
        self._is_cut = False

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        their_reader, their_writer = await asyncio.open_connection(*self._server)
        both = {writer, their_writer}
        self._writers |= both
        await asyncio.gather(self._pass_on(reader, their_writer), self._pass_on(their_reader, writer))
        self._writers -= both

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()
