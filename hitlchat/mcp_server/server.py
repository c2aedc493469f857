"""The server as the SDK knows it: one object for clients of all revisions."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from hitlchat.mcp_server.calling import call_tool
from hitlchat.mcp_server.changes import Audience
from hitlchat.mcp_server.listing import list_tools
from hitlchat.upstreams.ourselves import mark

logger = logging.getLogger(__name__)

NAME = "hitlchat"
INSTRUCTIONS = (
    "Some tools here run only after a person has approved the call. That may take minutes. If a call was declined, do"
    " not make it again for the same request; if it is said to wait, make the same call again later to get its outcome."
)
MOST_LISTENERS = 500


class OwnServer(Server[Any]):
    """Tells clients of every revision that its list changes, and says which installation it belongs to."""

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,  # noqa: ARG002
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        return super().get_capabilities(
            NotificationOptions(tools_changed=True),
            {**(experimental_capabilities or {}), **mark()},
            extensions,
            protocol_version=protocol_version,
        )


def make_server() -> OwnServer:
    audience = Audience()
    server = OwnServer(
        NAME,
        version="1",
        title="hitlchat",
        instructions=INSTRUCTIONS,
        lifespan=partial(_told_of_changes, audience),
        # Else every call with arguments would read the whole list first, for headers that our schemas do not ask for.
        get_tool_input_schema=lambda _: None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=audience.listening(MOST_LISTENERS),
    )
    server.middleware.append(_discreet)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, audience.join)
    return server


@asynccontextmanager
async def _told_of_changes(audience: Audience, _: Server[Any]) -> AsyncIterator[Audience]:
    async with audience.watching():
        yield audience


async def _discreet(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """Older clients would be told the text of whatever goes wrong here."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        logger.exception("%s over MCP failed", ctx.method[:64])
        raise MCPError(types.INTERNAL_ERROR, "An error in hitlchat; its log has more.") from error
