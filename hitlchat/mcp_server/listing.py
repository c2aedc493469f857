"""tools/list: the tools that one token may use, as MCP describes them."""

import base64
import binascii
from typing import Any

import mcp_types as types
from django.db.models import QuerySet
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from hitlchat.base.database import in_db
from hitlchat.gate import deciders
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.tools import tools_for
from hitlchat.mcp_server import outcomes
from hitlchat.mcp_server.door import ACCESS
from hitlchat.mcp_server.tokens import Access
from hitlchat.upstreams import exposure
from hitlchat.upstreams.catalog import SOURCE as COMPOSED

PAGE = 100
APPROVAL = {HitlMode.REQUIRED: "always", HitlMode.CONDITIONAL: "sometimes", HitlMode.DISABLED: "never"}
# From here on a tool reaches beyond this server, or may.
REACHES_OUT, DESTROYS = 3, 4


async def list_tools(
    ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    assert ctx.request is not None
    return await in_db(_page)(ctx.request.scope[ACCESS], params.cursor if params else None)


def visible(access: Access) -> QuerySet[Tool]:
    """The catalog of one token: what is published, as far as the installation offers it and the token may use it."""
    tools = tools_for(access.caller, access.tools).filter(risk_level__lte=access.ceiling)
    mode = exposure.standing().mode
    if exposure.offers(mode, COMPOSED) and exposure.offers(mode, ""):
        return tools
    return tools.filter(source=COMPOSED) if exposure.offers(mode, COMPOSED) else tools.exclude(source=COMPOSED)


def _page(access: Access, cursor: str | None) -> types.ListToolsResult:
    after = _place(cursor) if cursor is not None else ""
    found = list(visible(access).select_related("oversight").filter(name__gt=after).order_by("name")[: PAGE + 1])
    following = _cursor(found[PAGE - 1].name) if len(found) > PAGE else None
    # Of one person's list nobody else may keep a copy, and it may change at any time.
    return types.ListToolsResult(
        tools=[described(tool, attended=access.attended) for tool in found[:PAGE]],
        next_cursor=following,
        ttl_ms=0,
        cache_scope="private",
    )


def described(tool: Tool, *, attended: bool = False) -> types.Tool:
    """`attended`: whether a person sits at the client that it is described to."""
    # What the tool does is judged here: hints of whoever made it are none.
    reads = tool.risk_level <= 1
    return types.Tool(
        name=tool.name,
        title=tool.title or None,
        description=tool.description,
        input_schema=outcomes.input_schema(tool),
        output_schema=outcomes.output_schema(tool),
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=tool.risk_level >= DESTROYS,
            open_world_hint=tool.risk_level >= REACHES_OUT or tool.source == COMPOSED,
        ),
        _meta={
            "hitlchat/riskLevel": tool.risk_level,
            "hitlchat/risk": RISK_LABELS[tool.risk_level],
            "hitlchat/approval": APPROVAL[HitlMode(tool.hitl_mode)],
            "hitlchat/signedInOnly": not (attended and deciders.will_do(tool)),
        },
    )


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode("ascii")


def _place(cursor: str) -> str:
    try:
        name = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        name = ""
    if not 1 <= len(name) <= 64 or "\x00" in name:
        raise MCPError(types.INVALID_PARAMS, "cursor: expected one that an earlier answer gave.")
    return name
