"""Schemas of the tools of upstream servers, and of what is offered of them."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from hitlchat.api.schemas import Body, Object, Shape, Text
from hitlchat.api.tool_shapes import HitlModeName
from hitlchat.gate.models import LONGEST_DEADLINE

ToolStateName = Literal["new", "hidden", "exposed", "withheld", "gone", "unfit"]
ModeName = Literal["both", "own", "composed"]
MOST_TOOLS = 5000


class Warned(Shape):
    """A finding of the scan. `where` is a JSON pointer into the definition; `block`: to be read before exposing."""

    id: str
    severity: Literal["warn", "block"]
    where: str
    excerpt: str
    sentence: str


class ComposedTool(Shape):
    """One tool of an upstream server. `alias` is the name under which it is offered here, or would be. In addresses
    its `id` may stand for its name.
    """

    id: UUID
    tool: str
    exposed: bool
    alias: str
    description: str = Field(description="Instead of the upstream's own; empty: that one is used.")
    hitl_mode: HitlModeName
    prompt_template: str
    condition: str
    deadline_seconds: int | None = Field(description="To answer; null: as many as the installation gives.")
    signed_in_only: bool
    risk_level: int = Field(description="With which its calls are asked about, as cards and `/api/tools` say it.")
    inherent_risk_level: int = Field(description="Without what asking takes off; the ceiling is held against this one.")
    effective_risk_level: int = Field(description="The same as `riskLevel`.")
    state: ToolStateName
    reason: str
    warnings: list[Warned]
    problems: list[str] = Field(description="Why it cannot be offered.")
    digest: str = Field(description="Of its definition as listed last; send it back to expose what you have seen.")
    title: str
    upstream_description: str
    input_schema: Object | None = Field(description="In a list only with `schemas=true`.")
    output_schema: Object | None
    annotations: Object | None


class Fingerprint(Shape):
    profile: str
    digest: str
    at: datetime | None
    by: str | None
    record: Object | None


class Difference(Shape):
    """One place, as a JSON pointer into the record, with what cannot be seen as U+ and a code."""

    where: str
    kind: Literal["added", "removed", "changed"]
    before: str | None
    after: str | None


class HistoryEvent(Shape):
    id: int
    name: str
    at: datetime
    actor: str | None
    means: str
    digest: str
    data: Object
    record: Object | None = Field(description="The definition, where that is what changed; only with `records=true`.")


class WholeTool(ComposedTool):
    server: str
    risk_floor: str
    risk_reasons: list[str]
    accepted: Fingerprint | None = Field(description="What a person accepted last.")
    seen: Fingerprint = Field(description="What the server listed last.")
    differences: list[Difference] = Field(description="From the accepted to the listed one.")
    first_seen_at: datetime
    history: list[HistoryEvent] = Field(description="The last twenty, the newest first.")


class ToolChange(Body):
    """Every field that an administrator decides; one that is left out stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"exposed": True, "alias": "shop_refund", "hitlMode": "REQUIRED"},
                {"hitlMode": "DISABLED", "confirmLowering": True},
            ]
        }
    )

    tool: Text | None = Field(default=None, description="The upstream's own name.")
    exposed: bool | None = None
    alias: Text | None = Field(default=None, description="Empty: the default one.")
    description: Text | None = Field(default=None, description="Empty: the upstream's own.")
    hitl_mode: HitlModeName | None = None
    prompt_template: Text | None = None
    condition: Text | None = None
    deadline_seconds: Annotated[int, Field(ge=1, le=LONGEST_DEADLINE)] | None = Field(
        default=None, description="To answer. Waiting questions keep theirs. null: as many as the installation gives."
    )
    signed_in_only: bool | None = Field(default=None, description="The word of an MCP client is not enough for it.")
    digest: Text | None = Field(default=None, description="Refuse if the definition is another one by now.")
    warnings_read: bool = Field(default=False, description="The findings that block have been read by a person.")
    confirm_lowering: bool = Field(default=False, description="Also where it will run with less oversight.")


class NamedChange(ToolChange):
    tool: Text = Field(...)


class ToolChanges(Body):
    """All of them or none."""

    tools: Annotated[list[NamedChange], Field(min_length=1, max_length=MOST_TOOLS)]


class Accept(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"digest": "796f4530e2ec…"}]})

    digest: Text = Field(description="Of the definition that was looked at.")
    keep_mode: bool = Field(default=False, description="Also where it does not ask every time; else it does from now.")
    warnings_read: bool = Field(default=False, description="The findings that block have been read by a person.")


class ToolFilter(BaseModel):
    state: ToolStateName | None = None
    q: Text = Field("", description="A part of the upstream's name or of the alias.")
    schemas: bool = False
    limit: Annotated[int, Field(ge=1, le=MOST_TOOLS)] = 1000
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class HistoryFilter(BaseModel):
    records: bool = False
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    before: int | None = Field(None, ge=1, le=2**63 - 1, description="The id of the last event that you have.")


class Exposure(Shape):
    """The offer of this installation: `own` are tools written here, `composed` those of upstream servers. No composed
    tool of a higher inherent risk than `riskCeiling` is offered.
    """

    mode: ModeName
    risk_ceiling: int


class ExposureChange(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"mode": "both", "riskCeiling": 4}]})

    mode: ModeName | None = None
    risk_ceiling: Annotated[int, Field(ge=1, le=5)] | None = None
    confirm_lowering: bool = Field(default=False, description="Also where tools come back that ask less often.")
