"""A client of 2025-11-25 by hand, which does what the SDK's would not: answer nonsense, and die."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

ACCEPT = "application/json, text/event-stream"


class Older:
    def __init__(self, web: httpx2.AsyncClient) -> None:
        self._web = web
        self.question: dict[str, Any] = {}
        self.result: dict[str, Any] = {}
        self.asked = asyncio.Event()
        self.over = asyncio.Event()

    async def begin(self, **elicitation: Any) -> None:
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": elicitation},
            "clientInfo": {"name": "older", "version": "1"},
        }
        response = await self._post({"id": 0, "method": "initialize", "params": params})
        self._web.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        self._web.headers["mcp-protocol-version"] = "2025-11-25"
        await self._post({"method": "notifications/initialized"})

    async def call(self, name: str = "refund", **arguments: Any) -> None:
        """Make the call and read what comes, until its result does. Cancel it, and the connection is gone."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        try:
            async with self._web.stream("POST", "/mcp", json=body) as stream:
                async for line in stream.aiter_lines():
                    self._read(line)
        finally:
            self.over.set()

    async def answer(self, **answer: Any) -> None:
        """Answer the question: `result` or `error`."""
        await self._post({"id": self.question["id"], **answer})

    def _read(self, line: str) -> None:
        if not line.startswith("data: {"):
            return
        message = json.loads(line.removeprefix("data: "))
        if message.get("method") == "elicitation/create":
            self.question = message
            self.asked.set()
        elif message.get("id") == 1:
            self.result = message["result"]

    async def _post(self, message: dict[str, Any]) -> httpx2.Response:
        response = await self._web.post("/mcp", json={"jsonrpc": "2.0", **message})
        assert response.status_code in (200, 202), response.text
        return response


@asynccontextmanager
async def older(url: str, token: str, **elicitation: Any) -> AsyncIterator[Older]:
    headers = {"Authorization": f"Bearer {token}", "Accept": ACCEPT}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=30, trust_env=False, verify=False) as web:
        client = Older(web)
        await client.begin(**elicitation)
        yield client
