"""Upstream servers: for administrators, and where a program is to be started for people."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404
from ninja import Router

from hitlchat.api import server_schemas, server_shapes, server_tool_schemas
from hitlchat.api.auth import ApiRequest, administrator
from hitlchat.api.server_changes import BadChange
from hitlchat.upstreams import connections, exposure, own_address, servers
from hitlchat.upstreams.changes import NotConfirmed
from hitlchat.upstreams.drafts import BadServer, ServerDraft, draft_of
from hitlchat.upstreams.gallery import entries
from hitlchat.upstreams.models import Exposure, UpstreamServer
from hitlchat.upstreams.values import Value

router = Router(tags=["servers"], by_alias=True)
exposure_router = Router(tags=["servers"], by_alias=True)
MOST_NAMED = 20


@router.get("", response=list[server_schemas.Server])
def list_servers(request: ApiRequest) -> list[server_schemas.Server]:
    """Every upstream server, with what was last seen of it. What is secret of a connection is in no answer."""
    administrator(request)
    return [server_shapes.server(row) for row in server_shapes.servers()]


@router.post("", response={201: server_schemas.Server})
def create_server(request: ApiRequest, body: server_schemas.NewServer) -> server_schemas.Server:
    """A new server; it is connected at once, and nothing of it is exposed.

    For stdio 409 has the exact `commandLine` that would be started: send it back as `confirmedCommandLine`. Only a
    person's session or a token of kind “approver” may. 422 where the operator does not allow programs.
    """
    actor = administrator(request)
    draft = _vouched(ServerDraft(**_fields(body, {})), body)
    _check_address(request, draft)
    row = servers.create(draft, actor, confirmed=body.confirmed_command_line)
    return _shape(row.pk)


@router.get("/{name}", response=server_schemas.Server)
def read_server(request: ApiRequest, name: str) -> server_schemas.Server:
    administrator(request)
    return server_shapes.server(get_object_or_404(server_shapes.servers(), name=name))


@router.patch("/{name}", response=server_schemas.Server)
def change_server(request: ApiRequest, name: str, body: server_schemas.ServerChange) -> server_schemas.Server:
    """Change the fields that are given. Another connection withdraws what waits for an answer about the server's
    tools; if it leads elsewhere, they are withheld until a person accepts them again. 409 as for a new one."""
    actor, row = administrator(request), named(name)
    standing = draft_of(row)
    known = {field: {each.name: each for each in getattr(standing, field)} for field in ("headers", "env")}
    draft = _vouched(replace(standing, **_fields(body, known)), body)
    _check_address(request, draft)
    _still_there(servers.change, row.pk, draft, actor, confirmed=body.confirmed_command_line)
    return _shape(row.pk)


@router.delete("/{name}", response={204: None})
def delete_server(request: ApiRequest, name: str) -> None:
    """Remove the server with its tools; what waits is withdrawn. Calls and history stay on record."""
    actor = administrator(request)
    _still_there(servers.delete, named(name).pk, actor)


@router.post("/{name}/test", response=server_schemas.Tried)
def test_server(request: ApiRequest, name: str) -> server_schemas.Tried:
    """Connect once with a client of its own, read the list of tools, and disconnect; may take a minute. The live
    connection is not touched, and nothing of it is kept."""
    administrator(request)
    return server_shapes.tried(connections.attempt(named(name)))


@router.post("/{name}/reconnect", response={202: server_schemas.Server})
def reconnect_server(request: ApiRequest, name: str) -> server_schemas.Server:
    """Close the connection and open a new one, in every process; `status` tells what comes of it."""
    actor, row = administrator(request), named(name)
    _still_there(servers.reconnect, row.pk, actor)
    return _shape(row.pk)


@exposure_router.get("", response=server_tool_schemas.Exposure)
def read_exposure(request: ApiRequest) -> server_tool_schemas.Exposure:
    """Which kinds of tools this installation offers, and up to which risk."""
    administrator(request)
    return _exposure(exposure.standing())


@exposure_router.put("", response=server_tool_schemas.Exposure)
def change_exposure(request: ApiRequest, body: server_tool_schemas.ExposureChange) -> server_tool_schemas.Exposure:
    """Change what is given, at once and everywhere. Only a person may raise the ceiling; where tools come back by that
    which do not ask every time, 409 names them until `confirmLowering` is true."""
    actor, standing = administrator(request), exposure.standing()
    mode = standing.mode if body.mode is None else body.mode
    ceiling = standing.ceiling if body.risk_ceiling is None else body.risk_ceiling
    try:
        return _exposure(exposure.change(mode, ceiling, actor, confirmed=None if body.confirm_lowering else ""))
    except NotConfirmed as asked:
        names = ", ".join(f"{each.name[:64]!r} of {each.server}" for each in asked.loosenings[:MOST_NAMED])
        more = f", and {left} more" if (left := len(asked.loosenings) - MOST_NAMED) > 0 else ""
        said = f"These come back, and do not ask every time: {names}{more}. Send true to have it so."
        raise BadChange(409, {"confirmLowering": said}) from asked


def named(name: str) -> UpstreamServer:
    return get_object_or_404(UpstreamServer, name=name)


def _fields(body: server_schemas.ServerChange, standing: Mapping[str, Mapping[str, Value]]) -> dict[str, Any]:
    """A body's fields as a draft has them."""
    given = {name: getattr(body, name) for name in body.model_fields_set - {"confirmed_command_line"}}
    for field in {"headers", "env"} & given.keys():
        known = standing.get(field, {})
        given[field] = tuple(_value(name, each, known.get(name)) for name, each in given[field].items())
    if "args" in given:
        given["args"] = tuple(given["args"])
    return given


def _value(name: str, given: server_schemas.Given, standing: Value | None) -> Value:
    if given.value is None and standing is not None and standing.value is not None:
        # Not sealed so far: it stays, and may become a secret now.
        return Value(name, standing.value, given.secret if "secret" in given.model_fields_set else standing.secret)
    return Value(name, given.value, given.secret)


def _vouched(draft: ServerDraft, body: server_schemas.ServerChange) -> ServerDraft:
    found = entries.vouched(draft, draft.gallery_entry)
    if body.gallery_entry and not found.gallery_entry:
        raise BadServer({"gallery_entry": "The gallery has no such entry, or it leads elsewhere than this server."})
    return found


def _check_address(request: ApiRequest, draft: ServerDraft) -> None:
    if own_address.is_ours(draft.url, request):
        raise BadServer({"url": own_address.SENTENCE})


def _still_there(change: Any, *args: Any, **more: Any) -> None:
    try:
        change(*args, **more)
    except LookupError as error:
        raise Http404 from error


def _shape(server_id: UUID) -> server_schemas.Server:
    return server_shapes.server(get_object_or_404(server_shapes.servers(), pk=server_id))


def _exposure(found: Exposure) -> server_tool_schemas.Exposure:
    return server_tool_schemas.Exposure(mode=found.mode, risk_ceiling=found.ceiling)  # type: ignore[arg-type]
