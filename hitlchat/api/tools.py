"""The catalog, and for those who may author: writing, trying and publishing tools."""

from typing import Any

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Router, Status
from ninja.errors import HttpError

from hitlchat.accounts.roles import may_author
from hitlchat.api import shapes, tool_shapes
from hitlchat.api.auth import ApiRequest, author
from hitlchat.api.tool_shapes import TrialResult
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status as CallStatus
from tools_studio import authoring, trials
from tools_studio.authoring import NotTested
from tools_studio.drafts import SOURCE, AuthoringError, Draft
from tools_studio.variables import Variable

router = Router(tags=["tools"], by_alias=True)

LONGEST_TRIAL_SECONDS = 60.0


@router.get("", response=list[tool_shapes.Tool])
def list_tools(request: ApiRequest) -> list[tool_shapes.Tool]:
    """Every published tool; authors see drafts too."""
    return [_shape(request, row) for row in _visible(request)]


@router.post("", response={201: tool_shapes.Tool})
def create_tool(request: ApiRequest, body: tool_shapes.NewTool) -> tool_shapes.Tool:
    """A new tool, not published yet; under a name that another tool had it asks at least as much as that one.

    Its schema, risk level and source follow from its code and capabilities.
    """
    author(request)
    return _again(request, authoring.create(Draft(**_fields(body.model_dump())), request.auth.actor))


@router.get("/{name}", response=tool_shapes.Tool)
def read_tool(request: ApiRequest, name: str) -> tool_shapes.Tool:
    return _shape(request, get_object_or_404(_visible(request), name=name))


@router.patch("/{name}", response=tool_shapes.Tool)
def change_tool(request: ApiRequest, name: str, body: tool_shapes.ToolPatch) -> tool_shapes.Tool:
    """Change the fields that are given. What waits for an answer about the old definition is withdrawn.

    409: it would ask less (`confirmLowering`). Only a person's session or a token of kind “approver” may have it so.
    """
    author(request)
    fields = _fields(body.model_dump(exclude_unset=True))
    confirmed = fields.pop("confirm_lowering", False)
    return _again(request, authoring.amend(authored(name), fields, request.auth.actor, confirmed=confirmed))


@router.delete("/{name}", response={204: None})
def delete_tool(request: ApiRequest, name: str) -> None:
    """Remove the tool. Its calls stay on record; what waits is withdrawn."""
    author(request)
    authoring.delete(authored(name), request.auth.actor)


@router.post("/{name}/publish", response={200: tool_shapes.Tool, 202: TrialResult})
def publish_tool(
    request: ApiRequest, name: str, body: tool_shapes.Publish | None = None
) -> tool_shapes.Tool | Status[TrialResult]:
    """Put the tool into the catalog, if its code passes the check and a test run has passed since its last edit.

    403: with a token of kind “api”; a person publishes, signed in or with a token of kind “approver”.
    Where none has, one is made first. 202: that one asks; approve it, then publish again.
    """
    user, tool, actor = author(request), authored(name), request.auth.actor
    try:
        return _again(request, authoring.publish(tool, actor))
    except NotTested:
        arguments = _to_try(tool, body.arguments if body else None)
    call = _try(tool.name, arguments, Caller("studio", user.pk, user.get_username()))
    if call.status == CallStatus.WAITING:
        return Status(202, _waits(call))
    result = _trial(call)
    if result.error is not None:
        line = f"Line {result.error.line}: " if result.error.line else ""
        raise AuthoringError({"test": f"The test run did not pass. {line}{result.error.message}"})
    return _again(request, authoring.publish(authored(name), actor))


@router.post("/{name}/unpublish", response=tool_shapes.Tool)
def unpublish_tool(request: ApiRequest, name: str) -> tool_shapes.Tool:
    """Take the tool out of the catalog; what waits is withdrawn."""
    author(request)
    return _again(request, authoring.unpublish(authored(name), request.auth.actor))


@router.post("/{name}/test", response={200: TrialResult, 202: TrialResult})
def test_tool(request: ApiRequest, name: str, body: tool_shapes.Trial) -> Status[TrialResult]:
    """Call the tool as it is now, published or not; 202 when it asks first and so has no result yet."""
    user = author(request)
    tool = get_object_or_404(Tool, name=name)
    call = _try(tool.name, body.arguments, Caller("studio", user.pk, user.get_username()))
    return Status(200 if call.settled else 202, _trial(call))


def authored(name: str) -> Tool:
    return get_object_or_404(Tool.objects.select_related("script"), name=name, source=SOURCE)


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """A body's fields as a draft has them."""
    if "tags" in given:
        given["tags"] = tuple(given["tags"])
    if "variables" in given:
        given["variables"] = tuple(Variable(**each) for each in given["variables"])
    return given


def _to_try(tool: Tool, given: dict[str, Any] | None) -> dict[str, Any]:
    """What to test the tool with: what was given, else its example, else nothing if it needs nothing."""
    if given is not None:
        return given
    if tool.example is not None:
        return dict(tool.example)
    if tool.input_schema.get("required"):
        raise HttpError(409, f"{NotTested().problems['test']} Or send arguments to try it with, or give it an example.")
    return {}


def _try(name: str, arguments: dict[str, Any], caller: Caller) -> ToolCall:
    return async_to_sync(trials.attempt)(name, arguments, caller, LONGEST_TRIAL_SECONDS)


def _trial(call: ToolCall) -> TrialResult:
    return tool_shapes.trial(shapes.calls().get(pk=call.pk))


def _waits(call: ToolCall) -> TrialResult:
    result = _trial(call)
    said = "It was tested first, and it asks: approve the call, then publish again."
    fault = tool_shapes.Fault(kind=CallStatus.WAITING.value, message=said)
    return result.model_copy(update={"error": fault})


def _visible(request: ApiRequest) -> QuerySet[Tool]:
    rows = tool_shapes.tools()
    return rows if may_author(request.auth.user) else rows.filter(published=True)


def _shape(request: ApiRequest, row: Tool) -> tool_shapes.Tool:
    return tool_shapes.tool(row, for_author=may_author(request.auth.user))


def _again(request: ApiRequest, tool: Tool) -> tool_shapes.Tool:
    return _shape(request, tool_shapes.tools().get(pk=tool.pk))
