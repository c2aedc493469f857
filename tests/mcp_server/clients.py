"""MCP clients that nobody here wrote, at a server's /mcp; and how their users answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client import Client, ClientRequestContext
from mcp.client.session import ElicitationFnT, MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, Implementation

from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from tests.waiting import stored

MODERN: Final = "2026-07-28"
# `auto` finds the modern one, by asking the server about itself.
ERAS: Final = {"2025": "legacy", "2026": "auto"}


class Asked:
    """The user of a client: answers as told, and remembers the questions."""

    def __init__(self, *replies: Any) -> None:
        self.questions: list[ElicitRequestParams] = []
        self._replies = list(replies)

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> Any:
        self.questions.append(params)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        if callable(reply):
            reply = await reply(params)
        return ElicitResult.model_validate({"action": reply}) if isinstance(reply, str) else reply


class Raw:
    """JSON-RPC of 2026-07-28 by hand: one request, one answer, and nothing that a client would do by itself."""

    def __init__(self, url: str, token: str, **capabilities: Any) -> None:
        self._url, self._token, self._capabilities = f"{url}/mcp", token, capabilities

    async def call(self, name: str = "refund", arguments: Any = None, **more: Any) -> dict[str, Any]:
        """tools/call; the whole answer. `more`: other parameters of it."""
        return await self.request("tools/call", name=name, arguments=arguments or {"text": "hello"}, **more)

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        prefix = "io.modelcontextprotocol"
        meta = {f"{prefix}/protocolVersion": MODERN, f"{prefix}/clientCapabilities": self._capabilities}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": meta}}
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
            **({"Mcp-Name": params["name"]} if "name" in params else {}),
        }
        async with httpx2.AsyncClient(timeout=30, trust_env=False, verify=False) as web:
            response = await web.post(self._url, json=body, headers=headers)
        if response.headers["content-type"].startswith("text/event-stream"):
            last = [line for line in response.text.splitlines() if line.startswith("data: ")][-1]
            return dict(json.loads(last.removeprefix("data: ")))
        return dict(response.json())


def answer(state: str, action: str = "accept", **content: Any) -> dict[str, Any]:
    """The parameters that a call is made with once more, to answer its question."""
    reply = {"action": action, **({"content": content} if content else {})}
    return {"requestState": state, "inputResponses": {"approval": reply}}


def yes() -> Asked:
    return Asked("accept")


@asynccontextmanager
async def connected(
    url: str,
    token: str,
    era: str = "2026",
    user: ElicitationFnT | None = None,
    *,
    client_info: Implementation | None = None,
    message_handler: MessageHandlerFnT | None = None,
    headers: dict[str, str] | None = None,
) -> AsyncIterator[Client]:
    """The SDK's client, of one era; without `user` it cannot elicit."""
    shown = {"Authorization": f"Bearer {token}", **(headers or {})}
    async with (
        httpx2.AsyncClient(headers=shown, timeout=30, trust_env=False, verify=False) as web,
        Client(
            streamable_http_client(f"{url}/mcp", http_client=web),
            mode=ERAS[era],
            cache=None,
            elicitation_callback=user,
            read_timeout_seconds=30,
            client_info=client_info,
            message_handler=message_handler,
        ) as client,
    ):
        yield client


async def for_ever(_: ElicitRequestParams) -> Any:
    """A user who never answers."""
    await asyncio.Event().wait()


async def call_that_is(wanted: Status) -> ToolCall:
    """The one call, once it is in this state."""
    found: ToolCall = await stored(lambda: ToolCall.objects.filter(status=wanted).first(), f"a call is {wanted}")
    return found


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def status(result: CallToolResult) -> str:
    """In which of all ways the call ended, as the result's metadata says."""
    return str((result.meta or {}).get("hitlchat/status", ""))
