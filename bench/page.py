"""The websocket of a conversation's page, as its browser would hold it, and what a person does there."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from websockets.asyncio.client import ClientConnection, connect

from bench.people import Visitor
from tests.processes import Person, Server

CARD = re.compile(r'name="approval" value="([0-9a-f-]{36})">.*?name="digest" value="([0-9a-f]{64})"', re.DOTALL)
ACTIVE = re.compile(r'data-active="(1?)"')
SECONDS = 300.0


@dataclass
class Page:
    connection: ClientConnection
    # The newest frame since the page last sent something, and when it came: one frame may hold all that is awaited.
    newest: tuple[str, float] = ("", 0.0)
    # Whether the last of these that shows the run shows that it is over.
    is_over: bool = False

    async def say(self, content: str) -> None:
        await self._send(type="say", content=content)

    async def approve(self, card: str) -> None:
        found = CARD.search(card)
        assert found, card
        await self._send(type="decide", approval=found[1], digest=found[2], verdict="approve")

    async def until(self, words: str) -> tuple[str, float]:
        """The first frame that holds `words`, and when it came."""
        async with asyncio.timeout(SECONDS):
            while words not in self.newest[0]:
                await self._receive()
        return self.newest

    async def until_over(self) -> None:
        """Wait for the end of the run, which may be shown before the last of its text."""
        async with asyncio.timeout(SECONDS):
            while not self.is_over:
                await self._receive()

    async def _receive(self) -> None:
        self.newest = str(await self.connection.recv()), time.time()
        if shown := ACTIVE.findall(self.newest[0]):
            self.is_over = shown[-1] == ""

    async def _send(self, **frame: str) -> None:
        self.newest, self.is_over = ("", 0.0), False
        await self.connection.send(json.dumps(frame))


@asynccontextmanager
async def open_page(server: Server, person: Person | Visitor, conversation: UUID) -> AsyncIterator[Page]:
    """The page, with all that it shows at first already there."""
    connecting = connect(
        f"{server.url.replace('http', 'ws', 1)}/ws/conversations/{conversation}",
        origin=server.url,  # type: ignore[arg-type]
        additional_headers={"Cookie": "; ".join(f"{name}={value}" for name, value in person.cookies.items())},
        max_size=2**24,
        proxy=None,
        compression=None,
        ping_interval=None,
    )
    async with connecting as connection:
        page = Page(connection)
        await page.until('id="asks"')
        yield page


@asynccontextmanager
async def open_bare(port: int) -> AsyncIterator[ClientConnection]:
    connecting = connect(f"ws://127.0.0.1:{port}/", max_size=2**24, proxy=None, compression=None, ping_interval=None)
    async with connecting as connection:
        yield connection
