"""What the REST API takes and gives about tools."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from hitlchat.api.schemas import Body, Object, Shape
from tools_studio.outcomes import State

HitlModeName = Literal["REQUIRED", "CONDITIONAL", "DISABLED"]
Expectation = Literal["anything", "equals", "contains", "fails"]


class NewVariable(Body):
    """Without `value` it stays the one that is stored. `${NAME}` alone refers to the server's environment."""

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
    """What happened to one tool of the file, or would with `dryRun`. `hitlMode` is the one that it has here."""

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
