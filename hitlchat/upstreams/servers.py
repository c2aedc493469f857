"""Upstream servers are added, changed, switched off and on, and removed: by administrators, with all that follows."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from hitlchat.accounts.roles import may_administer
from hitlchat.base import canonical, database
from hitlchat.base.database import after_commit
from hitlchat.base.problems import Forbidden, NotFound, required
from hitlchat.gate import stated, tools
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Tool
from hitlchat.gate.transition import facts_digest, note
from hitlchat.secrets import references
from hitlchat.secrets.sealing import fingerprints
from hitlchat.upstreams import catalog, endpoint, server_draft
from hitlchat.upstreams.models import (
    ComposedTool,
    Exposure,
    ServerState,
    ToolEvent,
    Transport,
    UpstreamServer,
    servers_changed,
)
from hitlchat.upstreams.server_draft import BadServer, ServerDraft, draft_of

# What the record says of a server. Of addresses, headers and arguments, which may be secret, only that they changed.
SERVER_SETTINGS = ("name", "transport", "enabled", "trust", "allow_private", "docs_adequate", "gallery_entry")
# How it is reached, by what the record calls it. What is secret of it is sealed in the row.
REACHED: Final = {"reached": ("url", "command", "args"), "headers_and_variables": ("headers", "env")}
# They lower the risk of its tools, widen where it may be, or change what the person who approves reads of it.
_TRUSTED_BY = ("docs_url", "docs_adequate", "allow_private")
_MORE_OF_A_SAVED_ONE = ("name", "trust", "gallery_entry")
_WHERE = ("transport", "url", "command", "args")
# Of these depends who answers, and as whom we ask.
_REACHED_BY = (
    *("name", "transport", "url", "headers", "command", "args", "env", "allow_private", "call_seconds"),
    "older_protocol",
)
_FORGOTTEN: dict[str, Any] = {
    "reason": "",
    "last_error": "",
    "last_error_at": None,
    "latency_ms": None,
    "notes": [],
    "reported_at": None,
    "reported_by": "",
    "present": False,
}


def server_states(keys: Collection[str] | None) -> dict[str, dict[str, Any]]:
    """Return what the record states of servers: of how they are reached, which may be secret, only fingerprints."""
    rows = UpstreamServer.objects.all() if keys is None else UpstreamServer.objects.filter(pk__in=keys)
    return {
        str(server.pk): _settings_of(server)
        | {
            fact: fingerprints(canonical.dumps([getattr(server, name) for name in names]), "server")
            for fact, names in REACHED.items()
        }
        for server in rows.order_by("pk")
    }


def exposure_states(_keys: Collection[str] | None) -> dict[str, dict[str, Any]]:
    current = Exposure.current()
    return {"": {"mode": current.mode, "ceiling": current.ceiling}}


def tool_event_states(keys: Collection[str] | None) -> dict[str, dict[str, Any]]:
    """Return what the record states of the events of tools: a digest of all columns that stay as they were."""
    rows = ToolEvent.objects.all() if keys is None else ToolEvent.objects.filter(pk__in=keys)
    columns = ("server_name", "tool_name", "name", "actor_id", "means", "digest", "record", "data", "at")
    return {
        str(row.pk): {"digest": facts_digest({name: getattr(row, name) for name in columns})}
        for row in rows.order_by("pk").iterator(chunk_size=catalog.AT_A_TIME)
    }


def wake() -> None:
    """Let every process look at the servers again."""
    after_commit(servers_changed.send_robust, sender=None)


def note_server(
    name: str,
    server: UpstreamServer,
    actor: Actor,
    before: dict[str, Any],
    after: dict[str, Any],
    *,
    also: Iterable[str] = (),
) -> None:
    """Put a change of a server on record; `also`: what changed besides, without its values."""
    differing = [field for field in SERVER_SETTINGS if before.get(field) != after.get(field)]
    data: dict[str, Any] = {
        "server": server.name,
        "before": {field: before[field] for field in differing if field in before},
        "after": {field: after[field] for field in differing if field in after},
        "also": list(also),
    }
    data |= stated.states("server", server.pk) if after else {stated.STATES: {"server": {str(server.pk): None}}}
    note(None, name, actor=actor, data=data)


class OnlyAdministrators(Forbidden):
    def __init__(self) -> None:
        super().__init__("Only an administrator may change upstream servers and their exposed tools.")


class OnlyPeople(Forbidden):
    """A program's credential tried to make a tool ask less often, or to accept something; that is for people."""

    def __init__(self) -> None:
        super().__init__(
            "Only a person may accept a change, or let a tool do more or ask less: sign in, or use an approver token."
        )


def require_administrator(actor: Actor) -> None:
    """Raises: OnlyAdministrators, also for the system: nothing exposes itself."""
    user = User.objects.filter(pk=actor.user_id).first() if actor.user_id is not None else None
    if user is None or not may_administer(user):
        raise OnlyAdministrators


def require_person(actor: Actor) -> None:
    if not actor.is_person:
        raise OnlyPeople


def needs_person(draft: ServerDraft, saved: UpstreamServer | None = None) -> bool:
    """Return whether a program may not make `saved`, or a new server, what `draft` says (SR-27)."""
    before = draft_of(saved) if saved else ServerDraft(draft.name)
    watched = (*_TRUSTED_BY, *(_MORE_OF_A_SAVED_ONE if saved else ()))
    if any(getattr(draft, name) != getattr(before, name) for name in watched):
        return True
    if saved and draft.enabled and not before.enabled:
        return True
    if _referred(draft) - _referred(before):
        return True
    is_elsewhere = any(getattr(draft, name) != getattr(before, name) for name in _WHERE)
    has_credentials = bool(_referred(before)) or any(each.secret for each in (*before.headers, *before.env))
    return bool(saved) and is_elsewhere and has_credentials


def _referred(draft: ServerDraft) -> set[str]:
    given = [each.value or "" for each in (*draft.headers, *draft.env)]
    return {name for text in (draft.url, *draft.args, *given) for name in references.names(text)}


class NameTaken(BadServer):
    status = 409

    def __init__(self, name: str) -> None:
        super().__init__({"name": f"There is already a server named {name!r}, perhaps with different capitalization."})


class NotConfirmed(BadServer):
    """A program is only started as the person has seen it: `command_line` is what would be."""

    status = 409

    def __init__(self, command_line: str) -> None:
        super().__init__({"command": f"Confirm that the server should run: {command_line}"})
        self.command_line = command_line


def create(draft: ServerDraft, actor: Actor, *, confirmed: str = "") -> UpstreamServer:
    """Add a server. `confirmed`: the command line that the person has seen and agreed to. BadServer, NotConfirmed,
    OnlyAdministrators; OnlyPeople: a program is to be started, or a credential asks for what `needs_person` watches.
    """
    require_administrator(actor)
    columns = server_draft.columns(draft)
    if not actor.is_person and needs_person(draft):
        raise OnlyPeople
    check_program(draft, actor, confirmed)
    state = ServerState.NEW if draft.enabled else ServerState.DISABLED
    with database.unique(NameTaken(draft.name)):
        server = UpstreamServer.objects.create(created_by_id=actor.user_id, state=state, **columns)
        note_server("server.added", server, actor, {}, _settings_of(server))
        wake()
    return server


def change(server_id: UUID, draft: ServerDraft, actor: Actor, *, confirmed: str = "") -> UpstreamServer:
    """Change a server; the rest is as in `create`. Another connection is another server as far as approvals go: what
    waits is withdrawn, and its tools come back once they are listed over it. Raises: LookupError
    """
    require_administrator(actor)
    with database.unique(NameTaken(draft.name)):
        server = _locked(server_id)
        columns = server_draft.columns(draft, server)
        if not actor.is_person and needs_person(draft, server):
            raise OnlyPeople
        check_program(draft, actor, confirmed, server)
        _change(server, columns, actor)
        wake()
    return server


def enable(server_id: UUID, enabled: bool, actor: Actor) -> UpstreamServer:
    """Switch a server off, or as a person on. Raises: LookupError, OnlyAdministrators, OnlyPeople"""
    require_administrator(actor)
    if enabled:
        require_person(actor)
    with transaction.atomic():
        server = _locked(server_id)
        if server.enabled != enabled:
            _change(server, {"enabled": enabled}, actor)
            wake()
    return server


def reconnect(server_id: UUID, actor: Actor) -> UpstreamServer:
    """Let every process reconnect. Raises: LookupError, OnlyAdministrators; BadServer, it is disabled"""
    require_administrator(actor)
    with transaction.atomic():
        server = _locked(server_id)
        if not server.enabled:
            raise BadServer({"enabled": "The server is disabled: enable it first."})
        _store(server, {"revision": server.revision + 1, "state": ServerState.NEW, "reason": ""})
        wake()
    return server


def reach_anew(server_id: UUID, actor: Actor, change: Callable[[UpstreamServer], None], *, why: str) -> UpstreamServer:
    """Apply `change` to what requests carry, all or nothing: every process connects anew, and what waits is withdrawn
    for the reason `why`. Raises: LookupError, OnlyAdministrators, and what `change` raises
    """
    require_administrator(actor)
    with transaction.atomic():
        server = _locked(server_id)
        change(server)
        _store(server, {}, connects_anew=True)
        catalog.follow_all(server, actor, changed=why)
        wake()
    return server


def delete(server_id: UUID, actor: Actor) -> None:
    """Remove a server with its tools. Their calls and their history stay on record. LookupError, OnlyAdministrators."""
    require_administrator(actor)
    with transaction.atomic():
        server = _locked(server_id)
        rows = list(server.tools.filter(tool__isnull=False))
        catalog.store_events([catalog.event_of(row, server, "tool.deleted", actor) for row in rows], actor)
        offered = [row.tool_id for row in rows if row.tool_id]
        catalog.end_calls(dict.fromkeys(offered, "its server was removed"), actor)
        note_server("server.removed", server, actor, _settings_of(server), {})
        server.delete()
        tools.remove(Tool.objects.filter(pk__in=offered, source=catalog.SOURCE), actor)
        wake()


def check_program(draft: ServerDraft, actor: Actor, confirmed: str, saved: UpstreamServer | None = None) -> None:
    """Whoever may start programs on this machine may do anything on it: so only as a person has seen it, and not at all
    unless the operator allows it. BadServer, NotConfirmed, OnlyPeople.
    """
    if draft.transport != Transport.STDIO:
        return
    before = draft_of(saved) if saved else None
    if before and (before.transport, before.command_line, before.env) == ("stdio", draft.command_line, draft.env):
        return
    require_person(actor)
    if not settings.MCP_ALLOW_STDIO:
        raise BadServer({"transport": "Programs are not started on this machine: MCP_ALLOW_STDIO=1 allows it."})
    if not server_draft.can_be_found(draft):
        raise BadServer({"command": server_draft.NOT_FOUND})
    if confirmed != draft.command_line:
        raise NotConfirmed(draft.command_line)


def _settings_of(server: UpstreamServer) -> dict[str, Any]:
    return {name: getattr(server, name) for name in SERVER_SETTINGS}


def _locked(server_id: UUID) -> UpstreamServer:
    found = UpstreamServer.objects.select_for_update().filter(pk=server_id).first()
    return required(found, NotFound("The server no longer exists."))


def _store(server: UpstreamServer, columns: dict[str, Any], *, connects_anew: bool = False) -> None:
    """Write columns of a locked row. `connects_anew`: every process does, and what they saw of it is forgotten."""
    if connects_anew:
        state = ServerState.NEW if columns.get("enabled", server.enabled) else ServerState.DISABLED
        columns = {**columns, **_FORGOTTEN, "state": state, "revision": server.revision + 1}
    for name, value in columns.items():
        setattr(server, name, value)
    server.save(update_fields=[*columns, "updated_at"])


def _change(server: UpstreamServer, columns: dict[str, Any], actor: Actor) -> None:
    before, settings_before = endpoint.connection_of(server).identity(), _settings_of(server)
    differing = {name: value for name, value in columns.items() if getattr(server, name) != value}
    if not differing:
        return
    carried = sorted(name for name in differing if name not in SERVER_SETTINGS)
    _store(server, differing, connects_anew=any(name in differing for name in (*_REACHED_BY, "enabled")))
    note_server("server.changed", server, actor, settings_before, _settings_of(server), also=carried)
    if endpoint.connection_of(server).identity() != before:
        # Who is there now has not said what it offers.
        ComposedTool.objects.filter(server=server).update(listed=False)
    why = "its server was changed" if server.enabled else "its server was disabled"
    catalog.follow_all(server, actor, changed=why)
    if not server.enabled:
        offered = server.tools.filter(tool__isnull=False).values_list("tool_id", flat=True)
        catalog.end_calls(dict.fromkeys(offered, why), actor)
