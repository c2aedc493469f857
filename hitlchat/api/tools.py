"""The catalog, and for those who may author: writing, trying and publishing tools."""

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Router, Status

from hitlchat.accounts.roles import may_author
from hitlchat.api import schemas, shapes
from hitlchat.api.auth import ApiRequest, author
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status as CallStatus
from hitlchat.gate.submit import CallRequest, submit
from tools_studio import authoring
from tools_studio.authoring import Draft

router = Router(tags=["tools"], by_alias=True)

LONGEST_TRIAL_SECONDS = 60.0


@router.get("", response=list[schemas.Tool])
def list_tools(request: ApiRequest) -> list[schemas.Tool]:
    """Every published tool; authors see drafts too."""
    return [shapes.tool(row) for row in _visible(request)]


@router.post("", response={201: schemas.Tool})
def create_tool(request: ApiRequest, body: schemas.NewTool) -> schemas.Tool:
    """A new tool, not published yet. Its schema, risk level and source follow from its code and capabilities."""
    user = author(request)
    return shapes.tool(authoring.create(Draft(**body.model_dump()), user.pk))


@router.get("/{name}", response=schemas.Tool)
def read_tool(request: ApiRequest, name: str) -> schemas.Tool:
    return shapes.tool(get_object_or_404(_visible(request), name=name))


@router.patch("/{name}", response=schemas.Tool)
def change_tool(request: ApiRequest, name: str, body: schemas.ToolChange) -> schemas.Tool:
    """Change the fields that are given. What waits for an answer about the old definition is withdrawn."""
    author(request)
    tool = _authored(name)
    return shapes.tool(authoring.amend(tool, body.model_dump(exclude_unset=True), request.auth.actor))


@router.delete("/{name}", response={204: None})
def delete_tool(request: ApiRequest, name: str) -> None:
    """Remove the tool. Its calls stay on record; what waits is withdrawn."""
    author(request)
    authoring.delete(_authored(name), request.auth.actor)


@router.post("/{name}/publish", response=schemas.Tool)
def publish_tool(request: ApiRequest, name: str) -> schemas.Tool:
    """Put the tool into the catalog, if its code passes the check."""
    author(request)
    return shapes.tool(authoring.publish(_authored(name)))


@router.post("/{name}/unpublish", response=schemas.Tool)
def unpublish_tool(request: ApiRequest, name: str) -> schemas.Tool:
    """Take the tool out of the catalog; what waits is withdrawn."""
    author(request)
    return shapes.tool(authoring.unpublish(_authored(name), request.auth.actor))


@router.post("/{name}/test", response={200: schemas.TrialResult, 202: schemas.TrialResult})
def test_tool(request: ApiRequest, name: str, body: schemas.Trial) -> Status[schemas.TrialResult]:
    """Call the tool as it is now, published or not; 202 when it asks first and so has no result yet."""
    user = author(request)
    tool = get_object_or_404(Tool, name=name)
    call = _try(CallRequest(tool.name, body.arguments, Caller("studio", user.pk, user.get_username())))
    return Status(200 if call.settled else 202, shapes.trial(shapes.calls().get(pk=call.pk)))


@async_to_sync
async def _try(request: CallRequest) -> ToolCall:
    call = await submit(request)
    return await settled(call.pk, LONGEST_TRIAL_SECONDS) if call.status == CallStatus.ALLOWED else call


def _visible(request: ApiRequest) -> QuerySet[Tool]:
    rows = Tool.objects.select_related("script")
    return rows if may_author(request.auth.user) else rows.filter(published=True)


def _authored(name: str) -> Tool:
    return get_object_or_404(Tool.objects.select_related("script"), name=name, source=authoring.SOURCE)
