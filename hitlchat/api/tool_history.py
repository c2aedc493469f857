"""A tool's versions and test cases, for those who may author."""

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Query, Router

from hitlchat.api import tool_shapes
from hitlchat.api.auth import ApiRequest, author
from hitlchat.api.schemas import Page
from hitlchat.api.tools import LONGEST_TRIAL_SECONDS, authored
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool
from tools_studio import authoring, cases, versions
from tools_studio.cases import Case
from tools_studio.models import ScriptVersion, TestCase

router = Router(tags=["tools"], by_alias=True)


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
