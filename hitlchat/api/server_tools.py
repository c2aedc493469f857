"""The tools of upstream servers: what is known and offered of them, and how administrators change that."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import register_converter
from django.urls.converters import StringConverter
from ninja import Query, Router
from pydantic import BaseModel, BeforeValidator, Field
from pydantic.alias_generators import to_camel

from hitlchat.api.auth import ApiRequest
from hitlchat.api.contract import Body, HitlModeName, Object, Shape, Text, Username, examples, read
from hitlchat.api.servers import BadChange, OtherChange, named, only_administrators
from hitlchat.base.ids import uuid_of
from hitlchat.base.visible import Seen
from hitlchat.gate import spec
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import LONGEST_DEADLINE, Tool
from hitlchat.upstreams import exposure, models
from hitlchat.upstreams.changes import FIELDS, USUAL, Change, NotConfirmed, Refused
from hitlchat.upstreams.exposure import NotListed
from hitlchat.upstreams.models import UpstreamServer
from hitlchat.upstreams.risk.fingerprint import difference
from hitlchat.upstreams.risk.scan import findings_of

router = Router(tags=["servers"], by_alias=True)
router.add_decorator(only_administrators)

COUNT_HEADER = "X-Total-Count"
MOST_TOOLS = 5000
MOST_EVENTS = 20
DECIDED = ("exposed", *FIELDS, "digest", "warnings_read")

Visible = Annotated[str, BeforeValidator(lambda seen: seen.plain if isinstance(seen, Seen) else seen)]
VouchName = Literal["", "scan", "L1", "L2", "L3", "L4", "L5"]
ToolStateName = Literal["new", "hidden", "exposed", "withheld", "gone", "unfit"]


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
    tool: str = read("name")
    exposed: bool
    alias: str
    description: str = Field(description="Replaces the server's own description; empty: that one is used.")
    hitl_mode: HitlModeName
    prompt_template: str
    condition: str
    deadline_seconds: int | None = Field(description="Seconds to answer; null: the installation's default.")
    signed_in_only: bool
    risk_level: int = read("risk_effective", "The risk level shown on cards and at `/api/tools`.")
    inherent_risk_level: int = read(
        "risk_inherent", "The risk level before approval lowers it; the highest exposed level applies to this one."
    )
    effective_risk_level: int = read("risk_effective", "The same as `riskLevel`.")
    risk_unknown: bool = Field(description="Whether the levels are only estimates, since nobody here vouches for it.")
    vouch: VouchName = read(
        "standing_vouch",
        "What an administrator who knows the tool says of the definition of this `digest`: the level"
        " as estimated (`scan`), or another one. Empty: nobody vouches for it.",
    )
    vouch_note: str
    vouched_by: Username | None
    vouched_at: datetime | None
    state: ToolStateName
    reason: str
    warnings: list[Warned]
    problems: list[str] = Field(description="Why the tool cannot be offered.")
    digest: str = read("seen_digest", "Digest of the definition as last listed; send it back to expose what you saw.")
    title: str
    upstream_description: str
    input_schema: Object | None = Field(description="In a list only with `schemas=true`.")
    output_schema: Object | None
    annotations: Object | None


class Fingerprint(Shape):
    profile: str
    digest: str
    at: datetime | None
    by: Username | None
    record: Object | None


class Difference(Shape):
    """One place, as a JSON pointer into the record, with what cannot be seen as U+ and a code."""

    where: str
    kind: Literal["added", "removed", "changed"]
    before: Visible | None
    after: Visible | None


class HistoryEvent(Shape):
    id: int
    name: str
    at: datetime
    actor: Username | None
    means: str
    digest: str
    data: Object
    record: Object | None = Field(description="The definition, if it changed; only with `records=true`.")


class WholeTool(ComposedTool):
    server: str
    risk_floor: str
    risk_reasons: list[str]
    accepted: Fingerprint | None = Field(description="The definition that a person last accepted.")
    seen: Fingerprint = Field(description="The definition that the server last listed.")
    differences: list[Difference] = Field(description="Between the accepted and the listed definition.")
    first_seen_at: datetime
    history: list[HistoryEvent] = Field(description="The last twenty events, newest first.")


class ToolChange(Body):
    """Every field that an administrator decides; one that is left out stays as it is."""

    model_config = examples(
        {"exposed": True, "alias": "shop_refund", "hitlMode": "REQUIRED"},
        {"hitlMode": "DISABLED", "confirmLowering": True},
    )

    tool: Text | None = Field(default=None, description="The tool's name on its server.")
    exposed: bool | None = None
    alias: Text | None = Field(default=None, description="Empty: the default alias.")
    description: Text | None = Field(default=None, description="Empty: the server's own description.")
    hitl_mode: HitlModeName | None = None
    prompt_template: Text | None = None
    condition: Text | None = None
    deadline_seconds: Annotated[int, Field(ge=1, le=LONGEST_DEADLINE)] | None = Field(
        default=None, description="Seconds to answer; waiting questions keep theirs. null: the installation's default."
    )
    signed_in_only: bool | None = Field(default=None, description="An MCP client's word is not enough.")
    vouch: VouchName | None = Field(
        default=None,
        description="Vouches for the definition as listed now, of `digest` if that is sent: its risk is known, and of "
        "this level. Empty: takes that back. Only a person's session or a token of kind “approver” may.",
    )
    vouch_note: Text | None = Field(default=None, description="Why, for other administrators.")
    digest: Text | None = Field(
        default=None, description="Digest of the definition you reviewed; fails if it has changed."
    )
    warnings_read: bool = Field(default=False, description="Confirms that a person has read the blocking findings.")
    confirm_lowering: bool = Field(default=False, description="Confirms that the tool runs with less oversight.")


class NamedChange(ToolChange):
    tool: Text = Field(...)


class ToolChanges(Body):
    """All of them or none."""

    tools: Annotated[list[NamedChange], Field(min_length=1, max_length=MOST_TOOLS)]


class Accept(Body):
    model_config = examples({"digest": "796f4530e2ec…"})

    digest: Text = Field(description="Digest of the definition you reviewed.")
    keep_mode: bool = Field(default=False, description="Keeps the mode; else the tool asks every time from now on.")
    warnings_read: bool = Field(default=False, description="Confirms that a person has read the blocking findings.")


class ToolFilter(BaseModel):
    state: ToolStateName | None = None
    q: Text = Field("", description="Part of the tool's own name or its alias.")
    schemas: bool = False
    limit: Annotated[int, Field(ge=1, le=MOST_TOOLS)] = 1000
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class HistoryFilter(BaseModel):
    records: bool = False
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    before: int | None = Field(None, ge=1, le=2**63 - 1, description="The id of the last event you have.")


class AnyText(StringConverter):
    """A tool's name in an address, percent-encoded: it may have slashes, and whatever else its server likes."""

    regex = r"[\s\S]+"


register_converter(AnyText, "toolname")

# Changes by their places in the body: empty, or `tools.3.`.
Wanted = Mapping[str, ToolChange]


def tools(rows: Iterable[models.ComposedTool], *, schemas_too: bool) -> list[ComposedTool]:
    """Return the tools, whose servers and rows in the gate are loaded."""
    found = list(rows)
    aliases = exposure.proposals(found)
    return [ComposedTool.of(row, **_more(row, aliases[row.pk], schemas_too=schemas_too)) for row in found]


def _more(row: models.ComposedTool, alias: str, *, schemas_too: bool) -> dict[str, Any]:
    """Return what a tool's own row does not have, or has by another name."""
    # One that was never exposed has the settings of a new tool.
    record, tool = row.seen, row.tool or Tool()
    return {
        "alias": alias,
        **{name: getattr(tool, name) for name in spec.SETTINGS},
        "risk_unknown": not row.standing_vouch,
        **({"vouch_note": "", "vouched_by": None, "vouched_at": None} if not row.standing_vouch else {}),
        "warnings": findings_of(row.warnings),
        "title": record.get("title") or "",
        "upstream_description": record.get("description") or "",
        "input_schema": record.get("inputSchema", {}) if schemas_too else None,
        "output_schema": record.get("outputSchema") if schemas_too else None,
        "annotations": record.get("annotations") if schemas_too else None,
    }


def whole_tool(row: models.ComposedTool) -> WholeTool:
    return WholeTool.of(
        row,
        **_more(row, exposure.proposals([row])[row.pk], schemas_too=True),
        server=row.server.name,
        accepted=_fingerprint(row, "pinned", row.accepted_at, row.accepted_by) if row.pinned_digest else None,
        seen=_fingerprint(row, "seen", row.seen_at),
        differences=difference(row.pinned, row.seen) if row.pinned else [],
        history=[HistoryEvent.of(each, record=None) for each in events(row)[:MOST_EVENTS]],
    )


def _fingerprint(row: models.ComposedTool, which: str, at: datetime | None, by: User | None = None) -> Fingerprint:
    columns = {"record": which, "digest": f"{which}_digest", "profile": f"{which}_profile"}
    return Fingerprint(**{key: getattr(row, name) for key, name in columns.items()} | {"at": at, "by": by})


def events(row: models.ComposedTool) -> QuerySet[models.ToolEvent]:
    """The newest first."""
    return models.ToolEvent.objects.filter(tool=row).select_related("actor").order_by("-id")


@router.get("/{name}/tools", response=list[ComposedTool])
def list_server_tools(
    request: ApiRequest, name: str, wanted: Query[ToolFilter], response: HttpResponse
) -> list[ComposedTool]:
    """The tools of a server by name, up to 1,000 unless `limit` says otherwise; `X-Total-Count` tells how many there
    are. Whole definitions are left out, unless `schemas` asks for them.
    """
    rows = named(name).tools.order_by("name")
    if wanted.state:
        rows = rows.filter(state=wanted.state)
    if wanted.q:
        rows = rows.filter(Q(name__icontains=wanted.q) | Q(tool__name__icontains=wanted.q))
    response[COUNT_HEADER] = str(rows.count())
    rows = rows.select_related("tool", "vouched_by").defer("pinned")
    return tools(rows[wanted.offset : wanted.offset + wanted.limit], schemas_too=wanted.schemas)


@router.put("/{name}/tools", response=list[ComposedTool])
def change_server_tools(request: ApiRequest, name: str, body: ToolChanges) -> list[ComposedTool]:
    """All changes at once, or none. Errors are named by their place in the body, such as `tools.0.alias`."""
    wanted = {f"tools.{index}.": change for index, change in enumerate(body.tools)}
    return tools(_carry_out(named(name), wanted, request.auth.actor), schemas_too=False)


@router.get("/{name}/tools/{toolname:tool}/history", response=list[HistoryEvent])
def read_tool_history(request: ApiRequest, name: str, tool: str, wanted: Query[HistoryFilter]) -> list[HistoryEvent]:
    """Return what happened to the tool since someone accepted it first, the newest first; `before` for more."""
    rows = events(_tool(name, tool))
    if wanted.before is not None:
        rows = rows.filter(pk__lt=wanted.before)
    return [HistoryEvent.of(row, record=row.record if wanted.records else None) for row in rows[: wanted.limit]]


@router.post("/{name}/tools/{toolname:tool}/accept", response=WholeTool)
def accept_tool(request: ApiRequest, name: str, tool: str, body: Accept) -> WholeTool:
    """Take the definition of this digest for what the tool is from here on; it asks every time then, unless `keepMode`.

    409: it has changed again, or its server does not list it any more. Only a person's session or a token of kind
    “approver” may.
    """
    actor, row = request.auth.actor, _tool(name, tool)
    try:
        exposure.accept(row.pk, body.digest, actor, keep_mode=body.keep_mode, warnings_read=body.warnings_read)
    except NotListed as error:
        raise OtherChange({"tool": str(error)}) from error
    except Refused as error:
        raise _refusal(error, {row.pk: ""}) from error
    return whole_tool(_tool(name, str(row.pk)))


@router.get("/{name}/tools/{toolname:tool}", response=WholeTool)
def read_server_tool(request: ApiRequest, name: str, tool: str) -> WholeTool:
    """All that is known of the tool: its definition as accepted and as listed, its risk, its history."""
    return whole_tool(_tool(name, tool))


@router.put("/{name}/tools/{toolname:tool}", response=ComposedTool)
def change_server_tool(request: ApiRequest, name: str, tool: str, body: ToolChange) -> ComposedTool:
    """Expose or hide the tool, and how it asks; at once, wherever tools are used. Percent-encode a name that has
    slashes.

    409: it would run with less oversight (`confirmLowering`), or has changed since its `digest` was read. Only a
    person's session or a token of kind “approver” may let a tool do more or ask less.
    """
    row = _tool(name, tool)
    if body.tool not in {None, row.name}:
        raise BadChange({"tool": "The URL names another tool."})
    change = body.model_copy(update={"tool": row.name})
    return tools(_carry_out(row.server, {"": change}, request.auth.actor), schemas_too=True)[0]


def _tool(server_name: str, tool: str) -> models.ComposedTool:
    """Return the tool of this name, else of this id."""
    rows = named(server_name).tools.select_related("server", "tool", "accepted_by", "vouched_by")
    return rows.filter(name=tool).first() or get_object_or_404(rows, pk=uuid_of(tool))


def _carry_out(server: UpstreamServer, wanted: Wanted, actor: Actor) -> list[models.ComposedTool]:
    """All of it in one transaction. BadChange, OnlyAdministrators, OnlyPeople."""
    rows, changes = _rows(server, wanted), []
    for place, body in wanted.items():
        fields = {name: getattr(body, name) for name in DECIDED}
        if "deadline_seconds" in body.model_fields_set:
            fields["deadline_seconds"] = body.deadline_seconds or USUAL
        changes.append(Change(rows[place].pk, **fields))
    try:
        try:
            return exposure.apply(changes, actor, confirmed="")
        except NotConfirmed as loosening:
            _check_confirmed(loosening, rows, wanted)
            return exposure.apply(changes, actor, confirmed=loosening.digest)
    except NotConfirmed as error:
        raise OtherChange({"confirmLowering": f"{error} Something else was just changed. Try again."}) from error
    except Refused as error:
        raise _refusal(error, {row.pk: place for place, row in rows.items()}) from error


def _rows(server: UpstreamServer, wanted: Wanted) -> dict[str, models.ComposedTool]:
    """Return the tools by the places of their changes. Raises: BadChange"""
    names = {place: str(body.tool) for place, body in wanted.items()}
    rows = {row.name: row for row in server.tools.defer("seen", "pinned").filter(name__in=names.values())}
    errors: dict[str, str] = {}
    places: dict[str, str] = {}
    for place, name in names.items():
        if name not in rows:
            errors[f"{place}tool"] = "The server has no tool with this name."
        elif places.setdefault(name, place) != place:
            errors[f"{place}tool"] = "Listed twice."
    if errors:
        raise BadChange(errors)
    return {place: rows[name] for place, name in names.items()}


def _check_confirmed(loosening: NotConfirmed, rows: Mapping[str, models.ComposedTool], wanted: Wanted) -> None:
    loosened = {each.tool for each in loosening.loosenings}
    errors = {
        f"{place}confirmLowering": f"{row.name[:64]!r} would run with less oversight. Send true to confirm."
        for place, row in rows.items()
        if row.pk in loosened and not wanted[place].confirm_lowering
    }
    if errors:
        raise OtherChange(errors) from loosening


def _refusal(error: Refused, places: Mapping[UUID, str]) -> BadChange:
    errors: dict[str, str] = {}
    for tool, place in places.items():
        for problem in error.problems.get(tool, ()):
            field = f"{place}{to_camel(problem.field)}"
            errors[field] = f"{errors[field]} {problem.sentence}" if field in errors else problem.sentence
    stale = any(field.endswith("digest") for field in errors)
    return OtherChange(errors) if stale else BadChange(errors)
