"""The bare MCP server: the official SDK's low level under Daphne, nothing behind it. `python -m bench.bare TOOLS`.

Prints its port and serves until its input ends. It has one tool that answers at once, one that asks first, and others
that are only there to be listed, a hundred on each page.
"""

import asyncio
import logging
import sys
import time
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bench.daphne_alone import serve
from bench.home import SCHEMA

PAGE = 100
QUESTION = types.ElicitRequestFormParams(message="Run 'gated'?", requested_schema={"type": "object", "properties": {}})

tools = [
    types.Tool(name=name, description="Give a customer money back for an order.", input_schema=SCHEMA)
    for name in ("free", "gated", *(f"other_{number}" for number in range(int(sys.argv[1]) - 2)))
]


async def list_tools(
    _: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    begin = int(params.cursor) if params and params.cursor else 0
    more = str(begin + PAGE) if begin + PAGE < len(tools) else None
    return types.ListToolsResult(tools=tools[begin : begin + PAGE], next_cursor=more, ttl_ms=0, cache_scope="private")


async def call_tool(
    ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    if params.name == "gated":
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            answer = await ctx.session.elicit_form(
                QUESTION.message, QUESTION.requested_schema, related_request_id=ctx.request_id
            )
            assert answer.action == "accept"
        elif not params.input_responses:
            return types.InputRequiredResult(
                input_requests={"yes": types.ElicitRequest(params=QUESTION)}, request_state="asked"
            )
    at = {"at": time.time()}
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(at))], structured_content=at)


manager = StreamableHTTPSessionManager(
    app=Server("bare", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=lambda _: None)
)
_begun: list[asyncio.Task[None]] = []


async def application(scope: Any, receive: Any, send: Any) -> None:
    if not _begun:
        ready = asyncio.Event()
        _begun.append(asyncio.create_task(_run(ready)))
        await ready.wait()
    await manager.handle_request(scope, receive, send)


async def _run(ready: asyncio.Event) -> None:
    async with manager.run():
        ready.set()
        await asyncio.Event().wait()


def main() -> None:
    logging.disable()
    serve(application)


if __name__ == "__main__":
    main()
