"""The catalog; and for authors: tools are written, tried, published, exported, imported, with versions and cases."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import ninja
from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from ninja.errors import HttpError
from pydantic import Field

from hitlchat.accounts.roles import may_author
from hitlchat.api import calls
from hitlchat.api.auth import ApiRequest, author
from hitlchat.api.contract import Body, HitlModeName, Object, Page, Shape, Username, read
from hitlchat.gate import models as gate
from hitlchat.gate.actor import Caller
from hitlchat.gate.results import MESSAGES
from hitlchat.gate.status import Status
from hitlchat.gate.tools import listed
from tools_studio import authoring, cases, exchange, importing, variables, versions
from tools_studio.authoring import NotTested
from tools_studio.models import Script, ScriptVersion, TestCase
from tools_studio.spec import SOURCE, AuthoringError, Draft
from tools_studio.versions import Save

router = Router(tags=["tools"], by_alias=True)
files_router = Router(tags=["tools"], by_alias=True)

LONGEST_TRIAL_SECONDS = 60.0
WAITS = "The tool was tested first, and asks: approve the call, then publish again."

Expectation = Literal["anything", "equals", "contains", "fails"]


class NewVariable(Body):
    """A variable to set. Without `value` the stored one stays. `${NAME}` alone refers to the server's environment."""

    name: str
    secret: bool = False
    value: str | None = None


class ToolChange(Body):
    """Every field that an author decides; one that is left out stays as it is."""

    name: str = ""
    code: str = ""
    title: str = ""
    description: str = ""
    group: str = "tools"
    category: str = "Custom"
    tags: list[str] = Field(default_factory=list)
    capabilities: Object = Field(default_factory=dict)
    variables: list[NewVariable] = Field(default_factory=list)
    hitl_mode: HitlModeName | None = None
    prompt_template: str = ""
    condition: str = ""
    deadline_seconds: int | None = None
    signed_in_only: bool = Field(default=False, description="An MCP client's word is not enough.")
    example: Object | None = None


class ToolPatch(ToolChange):
    """`confirmLowering`: what gets weaker was shown to a person, who wants it so."""

    confirm_lowering: bool = False


class NewTool(ToolPatch):
    name: str = Field(...)
    code: str = Field(...)


class Variable(Shape):
    """`value` is null for a stored secret, and for everyone who may not write tools."""

    name: str
    secret: bool
    value: str | None


class Tool(Shape):
    name: str
    title: str
    description: str
    code: str | None
    capabilities: Object
    variables: list[Variable]
    hitl_mode: HitlModeName
    prompt_template: str
    condition: str
    example: Object | None
    source: str
    input_schema: Object
    output_schema: Object | None
    risk_level: int
    risk_unknown: bool = Field(description="Whether the level is only an estimate: nobody here vouches for the tool.")
    published: bool
    group: str | None
    category: str | None
    tags: list[str]
    deadline_seconds: int | None
    signed_in_only: bool
    version: int | None
    tested: bool = Field(description="Has a test run passed since the last edit?")
    missing_variables: list[str] = Field(description="Variables without a value, which prevent publishing.")
    revoked: str = Field(description="Why the tool must not run; empty if it may.")


class Trial(Body):
    arguments: Object = Field(default_factory=dict)


class Publish(Body):
    """Arguments for the test run, where one has to be made first; else the tool's example is tried."""

    arguments: Object | None = None


class Fault(Shape):
    kind: str
    message: str
    line: int | None = None


class TrialResult(Shape):
    ok: bool
    result: Any
    output: str
    error: Fault | None
    duration_ms: float
    call_id: UUID = read("id")
    approval_id: UUID | None


class VersionSummary(Shape):
    """`changed` names the fields that differ from the version before; null where that is not known."""

    number: int
    author: Username | None
    saved_at: datetime
    definition_hash: str
    changed: list[str] | None


class Version(VersionSummary):
    tool: Object = Field(description="The tool in the export format.")


class Restore(Body):
    confirm_lowering: bool = Field(default=False, description="Confirms that the tool asks less often than now.")


class NewCase(Body):
    name: str
    arguments: Object = Field(default_factory=dict)
    expectation: Expectation = "anything"
    expected: Any = None


class Case(Shape):
    """`outcome` is of the last run, of the tool as it is now."""

    id: int
    name: str
    arguments: Object
    expectation: Expectation
    expected: Any
    outcome: cases.State
    message: str
    call_id: UUID | None
    approval_id: UUID | None


class RunCases(Body):
    ids: list[int] | None = Field(default=None, description="By default all but those that wait for an answer.")


class CasesRun(Shape):
    passed: int
    total: int
    not_run: int = Field(description="How many tests were not run for lack of time.")
    cases: list[Case]


class Import(Body):
    document: Any
    on_conflict: Literal["leave", "replace", "rename"] = "leave"
    dry_run: bool = False
    confirm_lowering: bool = Field(default=False, description="Confirms that tools run with less oversight.")


class ImportedTool(Shape):
    """The fate of one tool of the file, now or with `dryRun`. `hitlMode` is the mode that it has here."""

    name: str
    imported_as: str
    action: Literal["new", "rename", "replace", "same", "leave"]
    hitl_mode: HitlModeName
    raised_from: HitlModeName | None
    risk_level: int = read("sound.risk_level")
    can: list[str] = read("powers")
    missing_variables: list[str]
    notes: list[str]


class Imported(Shape):
    dry_run: bool
    tools: list[ImportedTool]


def tools() -> QuerySet[gate.Tool]:
    """Load everything that `tool` reads."""
    return cases.with_tested(listed().select_related("script").prefetch_related("script__variables"))


def tool(request: ApiRequest, row: gate.Tool) -> Tool:
    """Return the tool with the variables' values only for authors."""
    script: Script | None = getattr(row, "script", None)
    values = [each.stored for each in script.variables.all()] if script else []
    is_author = may_author(request.auth.user)
    return Tool.of(
        row,
        code=script.code if script else None,
        capabilities=script.capabilities if script else {},
        variables=[Variable.of(each, value=each.shown().value if is_author else None) for each in values],
        group=script.group if script else None,
        category=script.category if script else None,
        tags=script.tags if script else [],
        version=script.version if script else None,
        missing_variables=sorted(variables.resolve(values).missing),
        revoked=script.revoked if script else "",
    )


def version(save: Save) -> VersionSummary:
    return VersionSummary.of(save.version, changed=save.fields)


def case(row: TestCase, of: gate.Tool) -> Case:
    outcome, call = cases.outcome_of(row, of), row.last_call
    return Case.of(
        row,
        outcome=outcome.state,
        message=outcome.reason,
        call_id=call.pk if call else None,
        approval_id=calls.approval_id(call) if call else None,
    )


@router.get("", response=list[Tool])
def list_tools(request: ApiRequest) -> list[Tool]:
    """Every published tool; authors see drafts too."""
    return [tool(request, row) for row in _visible(request)]


@router.post("", response={201: Tool})
def create_tool(request: ApiRequest, body: NewTool) -> Tool:
    """A new tool, not published yet; under a name that another tool had it asks at least as much as that one.

    Its schema, risk level and source follow from its code and capabilities. 409: its risk is L4 or more and it would
    not ask every time, or its name is another tool's but for capital letters (`confirmLowering`).
    """
    author(request)
    draft = Draft(**_fields(body))
    return _again(request, authoring.create(draft, request.auth.actor, confirmed=body.confirm_lowering))


@router.get("/{name}", response=Tool)
def read_tool(request: ApiRequest, name: str) -> Tool:
    return tool(request, get_object_or_404(_visible(request), name=name))


@router.patch("/{name}", response=Tool)
def change_tool(request: ApiRequest, name: str, body: ToolPatch) -> Tool:
    """Change the fields that are given. What waits for an answer about the old definition is withdrawn.

    409: it would ask less, or approvers would read other texts (`confirmLowering`). Only a person's session or a token
    of kind “approver” may have it so.
    """
    tool, fields = authored(request, name), _fields(body)
    return _again(request, authoring.amend(tool, fields, request.auth.actor, confirmed=body.confirm_lowering))


@router.delete("/{name}", response={204: None})
def delete_tool(request: ApiRequest, name: str) -> None:
    """Remove the tool. Its calls stay on record; what waits is withdrawn."""
    authoring.delete(authored(request, name), request.auth.actor)


@router.post("/{name}/publish", response={200: Tool, 202: TrialResult})
def publish_tool(request: ApiRequest, name: str, body: Publish | None = None) -> Tool | ninja.Status[TrialResult]:
    """Put the tool into the catalog, if its code passes the check and a test run has passed since its last edit.

    403: with a token of kind “api”; a person publishes, signed in or with a token of kind “approver”.
    Where none has, one is made first. 202: that one asks; approve it, then publish again.
    """
    tool, actor = authored(request, name), request.auth.actor
    try:
        return _again(request, authoring.publish(tool, actor))
    except NotTested:
        arguments = _to_try(tool, body.arguments if body else None)
    call = _try(request, tool.name, arguments)
    result = _trial(call)
    if call.status == Status.WAITING:
        fault = Fault(kind=Status.WAITING.value, message=WAITS)
        return ninja.Status(202, result.model_copy(update={"error": fault}))
    if result.error is not None:
        line = f"Line {result.error.line}: " if result.error.line else ""
        raise AuthoringError({"test": f"The test run did not pass. {line}{result.error.message}"})
    return _again(request, authoring.publish(authored(request, name), actor))


@router.post("/{name}/unpublish", response=Tool)
def unpublish_tool(request: ApiRequest, name: str) -> Tool:
    """Take the tool out of the catalog; what waits is withdrawn."""
    return _again(request, authoring.unpublish(authored(request, name), request.auth.actor))


@router.post("/{name}/test", response={200: TrialResult, 202: TrialResult})
def test_tool(request: ApiRequest, name: str, body: Trial) -> ninja.Status[TrialResult]:
    """Call the tool as it is now, published or not; 202 when it asks first and so has no result yet."""
    author(request)
    call = _try(request, get_object_or_404(gate.Tool, name=name).name, body.arguments)
    return ninja.Status(200 if call.settled else 202, _trial(call))


def authored(request: ApiRequest, name: str) -> gate.Tool:
    author(request)
    return get_object_or_404(gate.Tool.objects.select_related("script"), name=name, source=SOURCE)


def _fields(body: ToolPatch) -> dict[str, Any]:
    given = body.given("confirm_lowering")
    if "variables" in given:
        given["variables"] = tuple(variables.from_json(each.model_dump()) for each in given["variables"])
    return given


def _to_try(tool: gate.Tool, given: dict[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of a test run: those given, else the example, else none if none are required."""
    if given is not None:
        return given
    if tool.example is not None:
        return dict(tool.example)
    if tool.input_schema.get("required"):
        raise HttpError(409, f"{NotTested().errors['test']} Or send arguments for a test run, or add an example.")
    return {}


def _try(request: ApiRequest, name: str, arguments: dict[str, Any]) -> gate.ToolCall:
    return async_to_sync(cases.attempt)(name, arguments, _studio(request), LONGEST_TRIAL_SECONDS)


def _studio(request: ApiRequest) -> Caller:
    return Caller("studio", request.auth.user.pk, request.auth.user.get_username())


def _trial(call: gate.ToolCall) -> TrialResult:
    row = calls.rows().get(pk=call.pk)
    asks = f"This tool asks first: approve the call, then read its result at /api/calls/{row.pk}."
    sentences = MESSAGES | {Status.WAITING: asks, Status.WITHDRAWN: row.reason}
    sentence = sentences.get(Status(row.status), "It was not executed.")
    fault = calls.error(row) or {"kind": row.status, "message": sentence}
    return TrialResult.of(
        row,
        ok=row.status == Status.SUCCEEDED,
        error=None if row.status == Status.SUCCEEDED else Fault(**fault),
        duration_ms=row.duration_ms or 0,
        approval_id=calls.approval_id(row),
    )


def _visible(request: ApiRequest) -> QuerySet[gate.Tool]:
    return tools() if may_author(request.auth.user) else tools().filter(published=True)


def _again(request: ApiRequest, row: gate.Tool) -> Tool:
    return tool(request, tools().get(pk=row.pk))


@files_router.get("/tools-export", response=Object)
def export_tools(request: ApiRequest, name: Annotated[list[str], Query()] = []) -> Object:  # noqa: B006 - ninja copies it
    """The named tools as a file that an import takes, with their rules and tests; all authored ones without a name."""
    author(request)
    rows = gate.Tool.objects.filter(source=SOURCE).select_related("script")
    chosen = rows.filter(name__in=name) if name else rows
    if {*name} - {each.name for each in chosen}:
        raise Http404
    return exchange.document(chosen)


@files_router.post("/tools-import", response=Imported)
def import_tools(request: ApiRequest, body: Import) -> Imported:
    """All of the file or nothing. No tool is published by it, and none asks less often than before.

    409: approvers would read other texts of a tool, or it is new, risky and does not ask (`confirmLowering`).
    """
    author(request)
    entries = exchange.read_document(body.document)
    if body.dry_run:
        plan = importing.plan(entries, body.on_conflict)
    else:
        plan = importing.carry_out(entries, body.on_conflict, request.auth.actor, confirmed=body.confirm_lowering)
    fates = [
        ImportedTool.of(
            step,
            name=step.entry.draft.name,
            imported_as=step.name,
            hitl_mode=step.mode if step.writes or step.present is None else step.present.hitl_mode,
            raised_from=step.raised_from or None,
            missing_variables=sorted(step.missing),
        )
        for step in plan.steps
    ]
    return Imported(dry_run=body.dry_run, tools=fates)


@router.get("/{name}/versions", response=list[VersionSummary])
def list_versions(request: ApiRequest, name: str, page: Query[Page]) -> list[VersionSummary]:
    """Every save, the newest first."""
    # One more than is asked for: what the last one changed is seen against the one before it.
    rows = _versions(request, name)[page.offset : page.offset + page.limit + 1]
    return [version(save) for save in list(versions.saves(rows))[: page.limit]]


@router.get("/{name}/versions/{int:number}", response=Version)
def read_version(request: ApiRequest, name: str, number: int) -> Version:
    """The tool as it was saved then; secrets are not in it."""
    rows = _versions(request, name).filter(number__lte=number)
    row = get_object_or_404(rows, number=number)
    save = next(versions.saves([row, *rows.exclude(pk=row.pk)[:1]]))
    return Version.of(version(save), tool=save.version.draft)


@router.post("/{name}/versions/{int:number}/restore", response=Tool)
def restore_version(request: ApiRequest, name: str, number: int, body: Restore | None = None) -> Tool:
    """Save this version's content again, as the newest. 409: it asks less; send `confirmLowering`."""
    saved = get_object_or_404(_versions(request, name), number=number)
    confirmed = body is not None and body.confirm_lowering
    return _again(request, authoring.restore(saved, request.auth.actor, confirmed=confirmed))


@router.get("/{name}/cases", response=list[Case])
def list_cases(request: ApiRequest, name: str) -> list[Case]:
    """The test cases, each with what its last run came to."""
    return _listed(authored(request, name))


@router.post("/{name}/cases", response={201: Case})
def add_case(request: ApiRequest, name: str, body: NewCase) -> Case:
    tool = authored(request, name)
    row = cases.add(tool, cases.Case(body.name.strip(), body.arguments, body.expectation, body.expected))
    return case(row, tool)


@router.delete("/{name}/cases/{int:case_id}", response={204: None})
def delete_case(request: ApiRequest, name: str, case_id: int) -> None:
    get_object_or_404(cases.rows(authored(request, name)), pk=case_id).delete()


@router.post("/{name}/cases/run", response=CasesRun)
def run_cases(request: ApiRequest, name: str, body: RunCases | None = None) -> CasesRun:
    """Run them one after the other. Those of a tool that asks wait for an answer and count as waiting."""
    tool, ids = authored(request, name), body.ids if body else None
    rows = list(cases.rows(tool))
    if ids is None:
        rows = [row for row in rows if cases.outcome_of(row, tool).state != "waiting"]
    else:
        rows = [row for row in rows if row.pk in ids]
    not_run = async_to_sync(cases.run_all)(rows, tool, _studio(request), LONGEST_TRIAL_SECONDS)
    listed = _listed(tool)
    passed = sum(each.outcome == "passed" for each in listed)
    return CasesRun(passed=passed, total=len(listed), not_run=not_run, cases=listed)


def _listed(tool: gate.Tool) -> list[Case]:
    return [case(row, tool) for row in cases.rows(tool)]


def _versions(request: ApiRequest, name: str) -> QuerySet[ScriptVersion]:
    return ScriptVersion.objects.filter(script_id=authored(request, name).pk).select_related("author")
