"""Tools as a file: out of here, and in from elsewhere."""

from typing import Annotated

from django.http import Http404
from ninja import Query, Router

from hitlchat.api import tool_shapes
from hitlchat.api.auth import ApiRequest, author
from hitlchat.api.schemas import Object
from hitlchat.gate.models import Tool
from tools_studio import exchange
from tools_studio.drafts import SOURCE

router = Router(tags=["tools"], by_alias=True)


@router.get("/tools-export", response=Object)
def export_tools(request: ApiRequest, name: Annotated[list[str], Query()] = []) -> Object:  # noqa: B006 - ninja copies it
    """The named tools as a file that an import takes, with their rules and tests; all authored ones without a name."""
    author(request)
    rows = Tool.objects.filter(source=SOURCE).select_related("script")
    chosen = rows.filter(name__in=name) if name else rows
    if {*name} - {each.name for each in chosen}:
        raise Http404
    return exchange.document(chosen)


@router.post("/tools-import", response=tool_shapes.Imported)
def import_tools(request: ApiRequest, body: tool_shapes.Import) -> tool_shapes.Imported:
    """All of the file or nothing. No tool is published by it, and none asks less often than before."""
    author(request)
    entries = exchange.read_document(body.document)
    if body.dry_run:
        plan = exchange.plan(entries, body.on_conflict)
    else:
        plan = exchange.carry_out(entries, body.on_conflict, request.auth.actor)
    return tool_shapes.Imported(dry_run=body.dry_run, tools=[tool_shapes.imported(step) for step in plan.steps])
