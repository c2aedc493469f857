"""Tools as the REST API takes and gives them."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.db.models import QuerySet
from pydantic import Field

from hitlchat.api.schemas import Body, Object, Shape
from hitlchat.api.shapes import approval_id, error
from hitlchat.gate import models as gate
from hitlchat.gate.models import HitlMode
from hitlchat.gate.results import MESSAGES
from hitlchat.gate.status import Status
from tools_studio import cases, variables
from tools_studio.cases import State
from tools_studio.exchange import Step
from tools_studio.models import Script, TestCase
from tools_studio.variables import Kept
from tools_studio.versions import Save

HitlModeName = Literal["REQUIRED", "CONDITIONAL", "DISABLED"]
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
    signed_in_only: bool = Field(default=False, description="The word of an MCP client is not enough for it.")
    example: Object | None = None


class ToolPatch(ToolChange):
    """`confirmLowering`: what gets weaker was shown to a person, who wants it so."""

    confirm_lowering: bool = False


class NewTool(ToolChange):
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
    published: bool
    group: str | None
    category: str | None
    tags: list[str]
    deadline_seconds: int | None
    signed_in_only: bool
    version: int | None
    tested: bool = Field(description="Has a test run passed since the last edit?")
    missing_variables: list[str] = Field(description="Those without a value: until then it cannot be published.")
    revoked: str = Field(description="Why it must not run; empty when it may.")


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
    call_id: UUID
    approval_id: UUID | None


# -- Versions and test cases ------------------------------------------------------------------------------------------


class VersionSummary(Shape):
    """`changed` names the fields that differ from the version before; null where that is not known."""

    number: int
    author: str | None
    saved_at: datetime
    definition_hash: str
    changed: list[str] | None


class Version(VersionSummary):
    tool: Object = Field(description="The tool as its export has it.")


class Restore(Body):
    confirm_lowering: bool = Field(default=False, description="Also where it asks less than the tool does now.")
    lower_anyway: bool = Field(default=False, description="The former name of `confirmLowering`.")


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
    outcome: State
    message: str
    call_id: UUID | None
    approval_id: UUID | None


class RunCases(Body):
    ids: list[int] | None = Field(default=None, description="All but those that wait for an answer, if left out.")


class CasesRun(Shape):
    passed: int
    total: int
    not_run: int = Field(description="How many the time was too short for.")
    cases: list[Case]


# -- Files of tools ---------------------------------------------------------------------------------------------------


class Import(Body):
    document: Any
    on_conflict: Literal["leave", "replace", "rename"] = "leave"
    dry_run: bool = False


class ImportedTool(Shape):
    """The fate of one tool of the file, now or with `dryRun`. `hitlMode` is the mode that it has here."""

    name: str
    imported_as: str
    action: Literal["new", "rename", "replace", "same", "leave"]
    hitl_mode: HitlModeName
    raised_from: HitlModeName | None
    risk_level: int
    can: list[str]
    missing_variables: list[str]
    notes: list[str]


class Imported(Shape):
    dry_run: bool
    tools: list[ImportedTool]


def tools() -> QuerySet[gate.Tool]:
    """Return the tools with all that `tool` needs."""
    return cases.with_tested(gate.Tool.objects.select_related("script").prefetch_related("script__variables"))


def tool(row: gate.Tool, *, for_author: bool) -> Tool:
    script: Script | None = getattr(row, "script", None)
    kept = [Kept(each.name, each.secret, each.value) for each in script.variables.all()] if script else []
    return Tool(
        name=row.name,
        title=row.title,
        description=row.description,
        code=script.code if script else None,
        capabilities=script.capabilities if script else {},
        variables=[_variable(each, for_author=for_author) for each in kept],
        hitl_mode=_mode(row.hitl_mode),
        prompt_template=row.prompt_template,
        condition=row.condition,
        example=row.example,
        source=row.source,
        input_schema=row.input_schema,
        output_schema=row.output_schema,
        risk_level=row.risk_level,
        published=row.published,
        group=script.group if script else None,
        category=script.category if script else None,
        tags=script.tags if script else [],
        deadline_seconds=row.deadline_seconds,
        signed_in_only=row.signed_in_only,
        version=script.version if script else None,
        tested=row.tested,  # type: ignore[attr-defined]  # annotated by `tools`
        missing_variables=sorted(variables.resolve(kept).missing),
        revoked=script.revoked if script else "",
    )


def _variable(kept: Kept, *, for_author: bool) -> Variable:
    return Variable(name=kept.name, secret=kept.secret, value=kept.shown().value if for_author else None)


def _mode(mode: str) -> HitlModeName:
    return HitlMode(mode).value  # type: ignore[return-value]  # the database holds it to the same words


def trial(row: gate.ToolCall) -> TrialResult:
    return TrialResult(
        ok=row.status == Status.SUCCEEDED,
        result=row.result,
        output=row.output,
        error=_trial_fault(row),
        duration_ms=row.duration_ms or 0,
        call_id=row.pk,
        approval_id=approval_id(row),
    )


def _trial_fault(row: gate.ToolCall) -> Fault | None:
    if row.status == Status.SUCCEEDED:
        return None
    if found := error(row):
        return Fault(**found)
    if row.status == Status.WAITING:
        said = f"This tool asks first: approve the call, then read its result at /api/calls/{row.pk}."
    else:
        said = (
            row.reason if row.status == Status.WITHDRAWN else MESSAGES.get(Status(row.status), "It was not executed.")
        )
    return Fault(kind=row.status, message=said)


def version(save: Save) -> VersionSummary:
    row = save.version
    return VersionSummary(
        number=row.number,
        author=row.author.get_username() if row.author else None,
        saved_at=row.saved_at,
        definition_hash=row.definition_hash,
        changed=list(save.fields) if save.fields is not None else None,
    )


def whole_version(save: Save) -> Version:
    return Version(**version(save).model_dump(), tool=save.version.draft)


def case(row: TestCase, of: gate.Tool) -> Case:
    outcome, call = cases.outcome_of(row, of), row.last_call
    return Case(
        id=row.pk,
        name=row.name,
        arguments=row.arguments,
        expectation=row.expectation,  # type: ignore[arg-type]  # the database holds it to the same words
        expected=row.expected,
        outcome=outcome.state,
        message=outcome.said,
        call_id=call.pk if call else None,
        approval_id=approval_id(call) if call else None,
    )


def imported(step: Step) -> ImportedTool:
    return ImportedTool(
        name=step.entry.draft.name,
        imported_as=step.name,
        action=step.action,
        hitl_mode=_mode(step.mode if step.writes or step.standing is None else step.standing.hitl_mode),
        raised_from=_mode(step.raised_from) if step.raised_from else None,
        risk_level=step.sound.risk_level,
        can=step.powers,
        missing_variables=sorted(step.missing),
        notes=list(step.notes),
    )
