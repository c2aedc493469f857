"""A server for the conformance suite: the application that ships, with the server at /mcp enlarged by what the suite
wants of any server, and the token of a user put into each request, since the suite has no way to send one. Its argument
is the port.
"""

import sys
from typing import Any

import mcp_types as types
from django.conf import settings
from django.contrib.auth import get_user_model
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from hitlchat.asgi import application, household  # first of all ours: it makes Django ready
from hitlchat.management.commands.serve import GracefulServer
from hitlchat.mcp_server import calling, listing, server, tokens
from hitlchat.mcp_server.authentication import Authentication
from tests.mcp_server.conformance import catalog, contents, tools


def manager() -> StreamableHTTPSessionManager:
    made = server.manager()
    enlarge(made.app)
    return made


def enlarge(server: Server[Any]) -> None:
    contents.add_to(server)
    server.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    # Of a tool that is not in the catalog.
    server.get_tool_input_schema = tools.SCHEMAS.get


async def list_tools(ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams) -> types.ListToolsResult:
    found = await listing.list_tools(ctx, params)
    return found.model_copy(update={"tools": [*found.tools, *tools.described()]})


async def call_tool(ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> tools.Result:
    tool = tools.TOOLS.get(params.name, calling.call_tool)
    return await tool(ctx, params)


door = Authentication(server.McpApplication(manager))


def with_token(token: str) -> Any:
    shown = (b"authorization", f"Bearer {token}".encode())

    async def served(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == server.PATH:
            household.start()
            await door({**scope, "headers": [*scope["headers"], shown]}, receive, send)
        else:
            await application(scope, receive, send)

    return served


def main(port: int) -> None:
    settings.TOOL_SOURCES[catalog.SOURCE] = f"{catalog.__name__}.{catalog.ConformanceSource.__name__}"
    catalog.add_rows()
    bob = get_user_model().objects.get(username="bob")
    token = tokens.make_mcp(bob)
    bob.tokens.update(attended=True)
    GracefulServer(application=with_token(token), endpoints=[f"tcp:{port}:interface=127.0.0.1"]).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
