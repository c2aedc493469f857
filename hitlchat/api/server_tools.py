"""The tools of upstream servers, and what is offered of them: for administrators."""

from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import register_converter
from django.urls.converters import StringConverter
from ninja import Query, Router

from hitlchat.api import server_changes, server_tool_schemas, servers
from hitlchat.api.auth import ApiRequest, administrator
from hitlchat.api.server_changes import BadChange
from hitlchat.api.servers import named
from hitlchat.upstreams.models import ComposedTool

router = Router(tags=["servers"], by_alias=True)

COUNT_HEADER = "X-Total-Count"


class AnyText(StringConverter):
    """A tool's name in an address, percent-encoded: it may have slashes, and whatever else its server likes."""

    regex = r"[\s\S]+"


register_converter(AnyText, "toolname")


@router.get("/{name}/tools", response=list[server_tool_schemas.ComposedTool])
def list_server_tools(
    request: ApiRequest, name: str, wanted: Query[server_tool_schemas.ToolFilter], response: HttpResponse
) -> list[server_tool_schemas.ComposedTool]:
    """The tools of a server by name, up to 1,000 unless `limit` says otherwise; `X-Total-Count` tells how many there
    are. Whole definitions are left out, unless `schemas` asks for them.
    """
    administrator(request)
    rows = _wanted(named(name).tools.all(), wanted).order_by("name")
    response[COUNT_HEADER] = str(rows.count())
    found = rows.select_related("server", "tool").defer("pinned")[wanted.offset : wanted.offset + wanted.limit]
    return servers.tools(found, schemas_too=wanted.schemas)


@router.put("/{name}/tools", response=list[server_tool_schemas.ComposedTool])
def change_server_tools(
    request: ApiRequest, name: str, body: server_tool_schemas.ToolChanges
) -> list[server_tool_schemas.ComposedTool]:
    """All changes at once, or none. Errors are named by their place in the body, such as `tools.0.alias`."""
    actor, server = administrator(request), named(name)
    wanted = [(f"tools.{index}.", change) for index, change in enumerate(body.tools)]
    rows = server_changes.carry_out(server, wanted, actor)
    return servers.tools(rows, schemas_too=False)


@router.get("/{name}/tools/{toolname:tool}/history", response=list[server_tool_schemas.HistoryEvent])
def read_tool_history(
    request: ApiRequest, name: str, tool: str, wanted: Query[server_tool_schemas.HistoryFilter]
) -> list[server_tool_schemas.HistoryEvent]:
    """Return what happened to the tool since someone accepted it first, the newest first; `before` for more."""
    administrator(request)
    rows = servers.events(_tool(name, tool))
    if wanted.before is not None:
        rows = rows.filter(pk__lt=wanted.before)
    return [servers.event(row, records=wanted.records) for row in rows[: wanted.limit]]


@router.post("/{name}/tools/{toolname:tool}/accept", response=server_tool_schemas.WholeTool)
def accept_tool(
    request: ApiRequest, name: str, tool: str, body: server_tool_schemas.Accept
) -> server_tool_schemas.WholeTool:
    """Take the definition of this digest for what the tool is from here on; it asks every time then, unless `keepMode`.

    409: it has changed again, or its server does not list it any more. Only a person's session or a token of kind
    “approver” may.
    """
    actor, row = administrator(request), _tool(name, tool)
    server_changes.accept(row, body, actor)
    return servers.whole_tool(_tool(name, str(row.pk)))


@router.get("/{name}/tools/{toolname:tool}", response=server_tool_schemas.WholeTool)
def read_server_tool(request: ApiRequest, name: str, tool: str) -> server_tool_schemas.WholeTool:
    """All that is known of the tool: its definition as accepted and as listed, its risk, its history."""
    administrator(request)
    return servers.whole_tool(_tool(name, tool))


@router.put("/{name}/tools/{toolname:tool}", response=server_tool_schemas.ComposedTool)
def change_server_tool(
    request: ApiRequest, name: str, tool: str, body: server_tool_schemas.ToolChange
) -> server_tool_schemas.ComposedTool:
    """Expose or hide the tool, and how it asks; at once, wherever tools are used. Percent-encode a name that has
    slashes.

    409: it would run with less oversight (`confirmLowering`), or has changed since its `digest` was read. Only a
    person's session or a token of kind “approver” may let a tool do more or ask less.
    """
    actor, row = administrator(request), _tool(name, tool)
    if body.tool not in {None, row.name}:
        raise BadChange(422, {"tool": "The address names another tool."})
    change = body.model_copy(update={"tool": row.name})
    rows = server_changes.carry_out(row.server, [("", change)], actor)
    return servers.tools(rows, schemas_too=True)[0]


def _tool(server_name: str, tool: str) -> ComposedTool:
    """Return the tool of this name, else of this id."""
    rows = named(server_name).tools.select_related("server", "tool", "accepted_by")
    return rows.filter(name=tool).first() or get_object_or_404(rows, pk=_uuid(tool))


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise Http404 from error


def _wanted(rows: QuerySet[ComposedTool], wanted: server_tool_schemas.ToolFilter) -> QuerySet[ComposedTool]:
    if wanted.state is not None:
        rows = rows.filter(state=wanted.state)
    return rows.filter(Q(name__icontains=wanted.q) | Q(tool__name__icontains=wanted.q)) if wanted.q else rows
