"""JSON-RPC of 2026-07-28 over one connection that stays open, with nothing of a client's own work in the figures."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.mcp_server.clients import MODERN

PREFIX = "io.modelcontextprotocol"
META = {f"{PREFIX}/protocolVersion": MODERN, f"{PREFIX}/clientCapabilities": {}}


class Wire:
    def __init__(self, port: int, token: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._host, self._token = f"127.0.0.1:{port}", token
        self._reader, self._writer = reader, writer

    async def request(self, method: str, **params: Any) -> tuple[dict[str, Any], int]:
        """The answer, and how many bytes came."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}).encode()
        head = [
            "POST /mcp HTTP/1.1",
            f"Host: {self._host}",
            f"Authorization: Bearer {self._token}",
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
            f"MCP-Protocol-Version: {MODERN}",
            f"Mcp-Method: {method}",
            *([f"Mcp-Name: {params['name']}"] if "name" in params else []),
            f"Content-Length: {len(body)}",
        ]
        self._writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        answer = await self._answer()
        return dict(json.loads(answer[answer.index(b"{") : answer.rindex(b"}") + 1])), len(answer)

    async def _answer(self) -> bytes:
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if b"content-length: " in head:
            return await self._reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
        chunks = []
        while size := int(await self._reader.readline(), 16):
            chunks.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readline()
        return b"".join(chunks)


@asynccontextmanager
async def wire(port: int, token: str) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Wire(port, token, reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()
