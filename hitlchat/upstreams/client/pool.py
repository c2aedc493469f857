"""All upstream servers of this process."""

import asyncio
from typing import Any

import httpx2

from hitlchat.upstreams.client.calling import ToolCall
from hitlchat.upstreams.client.connection import Connection, OnStatus, OnTools, Status
from hitlchat.upstreams.client.listing import Listing, ListingFailed
from hitlchat.upstreams.client.results import NeverRan, Outcome
from hitlchat.upstreams.client.spec import ServerSpec, Surroundings


class Pool:
    """Connections by the name of their server, opened when they are first needed. Of one loop: whichever uses it first.

    `on_tools` is awaited with a server's whole list after each connect and each change of it; `on_status` is called
    with every change of a server's status, and must not take long.
    """

    def __init__(
        self, surroundings: Surroundings, *, on_tools: OnTools | None = None, on_status: OnStatus | None = None
    ) -> None:
        self._surroundings, self._on_tools, self._on_status = surroundings, on_tools, on_status
        self._connections: dict[str, Connection] = {}
        self._disabled: dict[str, Status] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changing = asyncio.Lock()

    async def put(self, spec: ServerSpec, *, enabled: bool = True, auth: httpx2.Auth | None = None) -> None:
        """Know this server from now on. One of that name with another spec is closed first; the same stays as it is."""
        self._check_loop()
        async with self._changing:
            old = self._connections.get(spec.name)
            if enabled and old is not None and old.spec == spec:
                return
            await self._take_out(spec.name)
            if not enabled:
                self._disabled[spec.name] = Status("disabled")
                return
            self._connections[spec.name] = Connection(
                spec, self._surroundings, auth=auth, on_tools=self._on_tools, on_status=self._on_status
            )

    async def remove(self, name: str) -> None:
        self._check_loop()
        async with self._changing:
            await self._take_out(name)

    def connect(self, name: str) -> None:
        """Begin to connect without waiting. LookupError."""
        self._check_loop()
        self._connections[name].start()

    async def reconnect(self, name: str) -> None:
        """Close the connection, and open a new one. LookupError."""
        self._check_loop()
        async with self._changing:
            old = self._connections[name]
            await old.close()
            new = self._connections[name] = old.anew()
            new.start()

    def status(self, name: str) -> Status:
        """LookupError: no server of that name is known here."""
        return self._disabled[name] if name in self._disabled else self._connections[name].status

    def has_news(self, name: str) -> bool:
        """Whether the server has said that its tools changed, and `on_tools` was not told yet how."""
        connection = self._connections.get(name)
        return connection is not None and connection.has_news

    def statuses(self) -> dict[str, Status]:
        return {name: self.status(name) for name in sorted({*self._disabled, *self._connections})}

    async def call_tool(self, server: str, name: str, arguments: dict[str, Any], **how: Any) -> Outcome:
        """Call a tool of this server; `how` are the other fields of a ToolCall. Never raises for the server's sake."""
        self._check_loop()
        connection = self._connections.get(server)
        if connection is None:
            return NeverRan("the server is disabled" if server in self._disabled else "the server is not known here")
        return await connection.call_tool(ToolCall(name, arguments, **how))

    async def list_tools(self, server: str) -> Listing:
        """Read its list of tools now. ListingFailed."""
        self._check_loop()
        connection = self._connections.get(server)
        if connection is None:
            raise ListingFailed("the server is disabled or not known here")
        return await connection.list_tools()

    async def ping(self, server: str) -> Status:
        """Look whether it is there. LookupError."""
        self._check_loop()
        connection = self._connections.get(server)
        return self.status(server) if connection is None else await connection.ping()

    async def close(self) -> None:
        """Close all connections, at the same time and within bounded time."""
        async with self._changing:
            connections, self._connections = list(self._connections.values()), {}
            await asyncio.gather(*(connection.close() for connection in connections))

    async def _take_out(self, name: str) -> None:
        self._disabled.pop(name, None)
        if (old := self._connections.pop(name, None)) is not None:
            await old.close()

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise RuntimeError("the upstream servers are connected in another event loop of this process")
