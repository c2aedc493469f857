"""The catalog; and for authors: tools are written, tried, published, exported, imported, with versions and cases."""

from typing import Annotated, Any

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Status
from ninja.errors import HttpError

from hitlchat.accounts.roles import may_author
from hitlchat.api import shapes, tool_shapes
from hitlchat.api.auth import ApiRequest, author
from hitlchat.api.schemas import Object, Page
from hitlchat.api.tool_shapes import TrialResult
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status as CallStatus
from tools_studio import authoring, cases, exchange, versions
from tools_studio.authoring import NotTested
from tools_studio.cases import Case
from tools_studio.drafts import SOURCE, AuthoringError, Draft
from tools_studio.models import ScriptVersion, TestCase
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
    """Return what to test the tool with: what was given, else its example, else nothing if it needs nothing."""
    if given is not None:
        return given
    if tool.example is not None:
        return dict(tool.example)
    if tool.input_schema.get("required"):
        raise HttpError(409, f"{NotTested().errors['test']} Or send arguments to try it with, or give it an example.")
    return {}


def _try(name: str, arguments: dict[str, Any], caller: Caller) -> ToolCall:
    return async_to_sync(cases.attempt)(name, arguments, caller, LONGEST_TRIAL_SECONDS)


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


files_router = Router(tags=["tools"], by_alias=True)


@files_router.get("/tools-export", response=Object)
def export_tools(request: ApiRequest, name: Annotated[list[str], Query()] = []) -> Object:  # noqa: B006 - ninja copies it
    """The named tools as a file that an import takes, with their rules and tests; all authored ones without a name."""
    author(request)
    rows = Tool.objects.filter(source=SOURCE).select_related("script")
    chosen = rows.filter(name__in=name) if name else rows
    if {*name} - {each.name for each in chosen}:
        raise Http404
    return exchange.document(chosen)


@files_router.post("/tools-import", response=tool_shapes.Imported)
def import_tools(request: ApiRequest, body: tool_shapes.Import) -> tool_shapes.Imported:
    """All of the file or nothing. No tool is published by it, and none asks less often than before."""
    author(request)
    entries = exchange.read_document(body.document)
    if body.dry_run:
        plan = exchange.plan(entries, body.on_conflict)
    else:
        plan = exchange.carry_out(entries, body.on_conflict, request.auth.actor)
    return tool_shapes.Imported(dry_run=body.dry_run, tools=[tool_shapes.imported(step) for step in plan.steps])


@router.get("/{name}/versions", response=list[tool_shapes.VersionSummary])
def list_versions(request: ApiRequest, name: str, page: Query[Page]) -> list[tool_shapes.VersionSummary]:
    """Every save, the newest first."""
    author(request)
    # One more than is asked for: what the last one changed is seen against the one before it.
    rows = _versions(authored(name))[page.offset : page.offset + page.limit + 1]
    return [tool_shapes.version(save) for save in list(versions.saves(rows))[: page.limit]]


@router.get("/{name}/versions/{int:number}", response=tool_shapes.Version)
def read_version(request: ApiRequest, name: str, number: int) -> tool_shapes.Version:
    """The tool as it was saved then; secrets are not in it."""
    author(request)
    rows = _versions(authored(name)).filter(number__lte=number)
    row = get_object_or_404(rows, number=number)
    return tool_shapes.whole_version(next(versions.saves([row, *rows.exclude(pk=row.pk)[:1]])))


@router.post("/{name}/versions/{int:number}/restore", response=tool_shapes.Tool)
def restore_version(
    request: ApiRequest, name: str, number: int, body: tool_shapes.Restore | None = None
) -> tool_shapes.Tool:
    """Save this version's content again, as the newest. 409: it asks less; send `confirmLowering`."""
    author(request)
    version = get_object_or_404(_versions(authored(name)), number=number)
    confirmed = body is not None and (body.confirm_lowering or body.lower_anyway)
    tool = authoring.restore(version, request.auth.actor, confirmed=confirmed)
    return tool_shapes.tool(tool_shapes.tools().get(pk=tool.pk), for_author=True)


@router.get("/{name}/cases", response=list[tool_shapes.Case])
def list_cases(request: ApiRequest, name: str) -> list[tool_shapes.Case]:
    """The test cases, each with what its last run came to."""
    author(request)
    return _listed(authored(name))


@router.post("/{name}/cases", response={201: tool_shapes.Case})
def add_case(request: ApiRequest, name: str, body: tool_shapes.NewCase) -> tool_shapes.Case:
    author(request)
    tool = authored(name)
    row = cases.add(tool, Case(body.name.strip(), body.arguments, body.expectation, body.expected))
    return tool_shapes.case(row, tool)


@router.delete("/{name}/cases/{int:case_id}", response={204: None})
def delete_case(request: ApiRequest, name: str, case_id: int) -> None:
    author(request)
    get_object_or_404(cases.rows(authored(name)), pk=case_id).delete()


@router.post("/{name}/cases/run", response=tool_shapes.CasesRun)
def run_cases(request: ApiRequest, name: str, body: tool_shapes.RunCases | None = None) -> tool_shapes.CasesRun:
    """Run them one after the other. Those of a tool that asks wait for an answer and count as waiting."""
    user, tool = author(request), authored(name)
    ids = body.ids if body else None
    rows = [row for row in cases.rows(tool) if _wanted(row, tool, ids)]
    not_run = async_to_sync(cases.run_all)(
        rows, tool, Caller("studio", user.pk, user.get_username()), LONGEST_TRIAL_SECONDS
    )
    listed = _listed(tool)
    passed = sum(each.outcome == "passed" for each in listed)
    return tool_shapes.CasesRun(passed=passed, total=len(listed), not_run=not_run, cases=listed)


def _wanted(row: TestCase, tool: Tool, ids: list[int] | None) -> bool:
    return row.pk in ids if ids is not None else cases.outcome_of(row, tool).state != "waiting"


def _listed(tool: Tool) -> list[tool_shapes.Case]:
    return [tool_shapes.case(row, tool) for row in cases.rows(tool)]


def _versions(tool: Tool) -> QuerySet[ScriptVersion]:
    return ScriptVersion.objects.filter(script_id=tool.pk).select_related("author")
