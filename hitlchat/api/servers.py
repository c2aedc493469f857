"""Upstream servers: for administrators, and where a program is to be started for people."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import BeforeValidator, Field, WithJsonSchema

from hitlchat.api.auth import ApiRequest, administrator, only_after
from hitlchat.api.contract import Body, Shape, Text, examples, read
from hitlchat.base.problems import Invalid
from hitlchat.secrets.values import Value
from hitlchat.upstreams import connections, endpoint, exposure, gallery, models, server_draft, servers
from hitlchat.upstreams.changes import NotConfirmed
from hitlchat.upstreams.models import ToolState, Transport, UpstreamServer
from hitlchat.upstreams.risk.rubric import assess_server
from hitlchat.upstreams.server_draft import BadServer, ServerDraft, draft_of

router = Router(tags=["servers"], by_alias=True)
exposure_router = Router(tags=["servers"], by_alias=True)
only_administrators = only_after(partial(administrator, to="see and change upstream servers"))
router.add_decorator(only_administrators)
exposure_router.add_decorator(only_administrators)

MOST_TOOLS_NAMED = 100
MOST_NAMED = 20

TransportName = Literal["http", "stdio", "sse"]
ModeName = Literal["both", "own", "composed"]
StateName = Literal["new", "connecting", "up", "down", "sign-in", "unusable", "disabled"]


class Shown(Shape):
    """A header or a variable. `value` is null for a stored secret."""

    value: str | None
    secret: bool


class Given(Body):
    """A header or a variable. Without `value` the one that is stored stays."""

    value: str | None = None
    secret: bool = True


def _written_out(given: Any) -> Any:
    if given is None or isinstance(given, str):
        return {"value": given}
    if isinstance(given, dict):
        return given
    raise ValueError("expected a text, null, or an object with value and secret")


_OBJECT = {
    "type": "object",
    "properties": {
        "value": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "secret": {"type": "boolean", "default": True},
    },
    "additionalProperties": False,
}
_VALUE_SCHEMA = {
    "anyOf": [{"type": "string"}, _OBJECT, {"type": "null"}],
    "description": "A string is a secret, stored encrypted unless it is a reference such as `${TOKEN}`; null keeps the "
    "stored value.",
}
Values = dict[str, Annotated[Given, BeforeValidator(_written_out), WithJsonSchema(_VALUE_SCHEMA)]]


class ServerChange(Body):
    """Every field that an administrator decides; one that is left out stays as it is. `headers` and `env` are replaced
    as a whole: name those that are to stay, with null.
    """

    model_config = examples({"enabled": False}, {"headers": {"Authorization": None, "X-Team": "${TEAM}"}})

    name: Text = ""
    transport: TransportName = "http"
    url: Text = ""
    headers: Values = Field(default_factory=dict)
    command: Text = ""
    args: list[Text] = Field(default_factory=list)
    env: Values = Field(default_factory=dict)
    enabled: bool = True
    allow_private: bool = Field(default=False, description="Its public name may lead to a private address.")
    call_seconds: int = Field(default=60, description="Time limit for one call, in seconds: 1 to 3,600.")
    older_protocol: bool = Field(default=False, description="Speak 2025-11-25 or before: its newest is broken.")
    docs_url: Text = ""
    docs_adequate: bool = Field(
        default=True, description="Whether a person found the documentation sufficient, or nobody has checked."
    )
    gallery_entry: Text = ""
    confirmed_command_line: Text = Field(
        default="", description="For stdio: the exact `commandLine` from the 409 that you got without this field."
    )


class NewServer(ServerChange):
    model_config = examples(
        {
            "name": "shop",
            "transport": "http",
            "url": "https://shop.example/mcp",
            "headers": {
                "Authorization": "Bearer ${SHOP_TOKEN}",
                "X-Team": {"value": "blue", "secret": False},
            },
        },
        {
            "name": "clock",
            "transport": "stdio",
            "command": "mcp-server-time",
            "args": ["--local-timezone", "Europe/Berlin"],
            "confirmedCommandLine": "mcp-server-time --local-timezone Europe/Berlin",
        },
    )

    name: Text = Field(...)


class Server(Shape):
    """`status`, `reason` and what follows are what a process of this installation last saw."""

    name: str
    transport: TransportName
    url: str
    headers: dict[str, Shown]
    command: str
    args: list[str]
    env: dict[str, Shown]
    command_line: str | None = Field(description="The command as typed in a shell; null unless stdio.")
    enabled: bool
    allow_private: bool
    call_seconds: int
    older_protocol: bool
    docs_url: str
    docs_adequate: bool
    gallery_entry: str
    trust: str
    status: StateName = read("state")
    reason: str
    last_error: str
    last_error_at: datetime | None
    latency_ms: float | None
    reported_at: datetime | None
    protocol_version: str
    told_name: str = Field(description="The server's name for itself.")
    told_version: str
    notes: list[str] = Field(description="The last lines of its standard error, and faults in its output.")
    tool_count: int
    exposed_count: int
    withheld_count: int
    listing_note: str = Field(description="The part of the server's tool list that was left out.")
    listed_at: datetime | None
    risk_level: int
    risk_reasons: list[str]
    created_at: datetime
    updated_at: datetime


class Tried(Shape):
    """`error` says in words what came in the way; `signIn`: the server wants someone to sign in."""

    ok: bool
    error: str
    sign_in: bool
    latency_ms: float | None
    protocol_version: str
    told_name: str = read("server_name")
    told_version: str = read("server_version")
    tool_count: int | None
    tools: list[str] = Field(description="Names of the tools, up to 100.")
    notes: list[str]


class Exposure(Shape):
    """The offer of this installation: `own` are tools written here, `composed` those of upstream servers. No composed
    tool of a higher inherent risk than `riskCeiling` is offered.
    """

    mode: ModeName
    risk_ceiling: int = read("ceiling")


class ExposureChange(Body):
    model_config = examples({"mode": "both", "riskCeiling": 4})

    mode: ModeName | None = None
    risk_ceiling: Annotated[int, Field(ge=1, le=5)] | None = None
    confirm_lowering: bool = Field(default=False, description="Confirms that returning tools do not ask every time.")


class BadChange(Invalid):
    """Nothing was changed, since it cannot be. `errors` has the reasons by their place in the body."""


class OtherChange(BadChange):
    """Nothing was changed, since it would be another change than its sender means."""

    status = 409


def servers_out() -> QuerySet[UpstreamServer]:
    """Return the servers with all that `server` needs."""
    return UpstreamServer.objects.annotate(
        exposed_count=Count("tools", filter=Q(tools__state=ToolState.EXPOSED)),
        withheld_count=Count("tools", filter=Q(tools__state=ToolState.WITHHELD)),
    )


def server(row: UpstreamServer) -> Server:
    risk = assess_server(endpoint.facts_of(row, writes=row.writes))
    return Server.of(
        row,
        headers=_shown(row.headers),
        env=_shown(row.env),
        command_line=draft_of(row).command_line if row.transport == Transport.STDIO else None,
        tool_count=row.tool_count or 0,
        risk_level=risk.level,
        risk_reasons=list(risk.reasons),
    )


def _shown(stored: Iterable[dict[str, Any]]) -> dict[str, Shown]:
    return {each.name: Shown.of(each.shown()) for each in server_draft.read_values(stored)}


@router.get("", response=list[Server])
def list_servers(request: ApiRequest) -> list[Server]:
    """Every upstream server, with what was last seen of it. What is secret of a connection is in no answer."""
    return [server(row) for row in servers_out()]


@router.post("", response={201: Server})
def create_server(request: ApiRequest, body: NewServer) -> Server:
    """A new server; it is connected at once, and nothing of it is exposed.

    For stdio 409 has the exact `commandLine` that would be started: send it back as `confirmedCommandLine`. Only a
    person's session or a token of kind “approver” may. 422 where the operator does not allow programs.
    """
    actor = request.auth.actor
    draft = _checked(request, ServerDraft(**_fields(body, {})), body)
    row = servers.create(draft, actor, confirmed=body.confirmed_command_line)
    return _shape(row.pk)


@router.get("/{name}", response=Server)
def read_server(request: ApiRequest, name: str) -> Server:
    return server(get_object_or_404(servers_out(), name=name))


@router.patch("/{name}", response=Server)
def change_server(request: ApiRequest, name: str, body: ServerChange) -> Server:
    """Change the fields that are given. Another connection withdraws what waits for an answer about the server's
    tools; if it leads elsewhere, they are withheld until a person accepts them again. 409 as for a new one.
    """
    actor, row = request.auth.actor, named(name)
    before = draft_of(row)
    stored = {field: {each.name: each for each in getattr(before, field)} for field in ("headers", "env")}
    draft = _checked(request, replace(before, **_fields(body, stored)), body)
    servers.change(row.pk, draft, actor, confirmed=body.confirmed_command_line)
    return _shape(row.pk)


@router.delete("/{name}", response={204: None})
def delete_server(request: ApiRequest, name: str) -> None:
    """Remove the server with its tools; what waits is withdrawn. Calls and history stay on record."""
    servers.delete(named(name).pk, request.auth.actor)


@router.post("/{name}/test", response=Tried)
def test_server(request: ApiRequest, name: str) -> Tried:
    """Connect once with a client of its own, read the list of tools, and disconnect; may take a minute. The live
    connection is not touched, and nothing of it is kept.
    """
    trial = connections.attempt(named(name))
    listed = trial.listing.tools if trial.listing else ()
    return Tried.of(
        trial,
        ok=not trial.error,
        sign_in=trial.http_status == 401,
        tool_count=len(listed) if trial.listing else None,
        tools=[each.name for each in listed[:MOST_TOOLS_NAMED]],
    )


@router.post("/{name}/reconnect", response={202: Server})
def reconnect_server(request: ApiRequest, name: str) -> Server:
    """Close the connection and open a new one, in every process; `status` tells what comes of it."""
    actor, row = request.auth.actor, named(name)
    servers.reconnect(row.pk, actor)
    return _shape(row.pk)


@exposure_router.get("", response=Exposure)
def read_exposure(request: ApiRequest) -> models.Exposure:
    """Return which kinds of tools this installation offers, and up to which risk."""
    return models.Exposure.current()


@exposure_router.put("", response=Exposure)
def change_exposure(request: ApiRequest, body: ExposureChange) -> models.Exposure:
    """Change what is given, at once and everywhere. Only a person may raise the ceiling; where tools come back by that
    which do not ask every time, 409 names them until `confirmLowering` is true.
    """
    actor, before = request.auth.actor, models.Exposure.current()
    mode = before.mode if body.mode is None else body.mode
    ceiling = before.ceiling if body.risk_ceiling is None else body.risk_ceiling
    try:
        return exposure.change(mode, ceiling, actor, confirmed=None if body.confirm_lowering else "")
    except NotConfirmed as refusal:
        names = ", ".join(f"{each.name[:64]!r} of {each.server}" for each in refusal.loosenings[:MOST_NAMED])
        more = f", and {left} more" if (left := len(refusal.loosenings) - MOST_NAMED) > 0 else ""
        sentence = f"These tools come back and do not ask every time: {names}{more}. Send true to confirm."
        raise OtherChange({"confirmLowering": sentence}) from refusal


def named(name: str) -> UpstreamServer:
    return get_object_or_404(UpstreamServer, name=name)


def _fields(body: ServerChange, stored: Mapping[str, Mapping[str, Value]]) -> dict[str, Any]:
    given = body.given("confirmed_command_line")
    for field in {"headers", "env"} & given.keys():
        values = stored.get(field, {})
        given[field] = tuple(_value(name, each, values.get(name)) for name, each in given[field].items())
    return given


def _value(name: str, given: Given, stored: Value | None) -> Value:
    if given.value is None and stored is not None and stored.value is not None:
        # Not sealed so far: it stays, and may become a secret now.
        return Value(name, stored.value, given.secret if "secret" in given.model_fields_set else stored.secret)
    return Value(name, given.value, given.secret)


def _checked(request: ApiRequest, draft: ServerDraft, body: ServerChange) -> ServerDraft:
    """Return the draft with what the gallery vouches for. Raises: BadServer"""
    found = gallery.vouched(draft, draft.gallery_entry)
    if body.gallery_entry and not found.gallery_entry:
        raise BadServer({"gallery_entry": "The gallery has no such entry, or the entry is for another server."})
    if endpoint.is_own_address(draft.url, request):
        raise BadServer({"url": endpoint.SENTENCE})
    return found


def _shape(server_id: UUID) -> Server:
    return server(get_object_or_404(servers_out(), pk=server_id))
