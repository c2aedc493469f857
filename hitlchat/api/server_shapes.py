"""From the rows of upstream servers and their tools to what the API gives."""

from collections.abc import Iterable
from typing import Any, cast

from django.db.models import Count, Q, QuerySet

from hitlchat.api import server_schemas as schemas
from hitlchat.api import server_tool_schemas as tool_schemas
from hitlchat.base.visible import Seen
from hitlchat.gate.models import HitlMode
from hitlchat.upstreams import composing, judging, reaching, values
from hitlchat.upstreams.client import Trial
from hitlchat.upstreams.drafts import draft_of
from hitlchat.upstreams.models import ComposedTool, ToolEvent, ToolState, Transport, UpstreamServer
from hitlchat.upstreams.risk.difference import difference
from hitlchat.upstreams.risk.rubric import assess_server

MOST_NAMED = 100
MOST_EVENTS = 20


def servers() -> QuerySet[UpstreamServer]:
    """With all that `server` needs."""
    exposed = Count("tools", filter=Q(tools__state=ToolState.EXPOSED))
    return UpstreamServer.objects.annotate(
        exposed_count=exposed, withheld_count=Count("tools", filter=Q(tools__state=ToolState.WITHHELD))
    )


def server(row: UpstreamServer) -> schemas.Server:
    risk = assess_server(reaching.facts_of(row, writes=row.writes))
    return schemas.Server(
        name=row.name,
        transport=cast("schemas.TransportName", row.transport),
        url=row.url,
        headers=_shown(row.headers),
        command=row.command,
        args=row.args,
        env=_shown(row.env),
        command_line=draft_of(row).command_line if row.transport == Transport.STDIO else None,
        enabled=row.enabled,
        allow_private=row.allow_private,
        call_seconds=row.call_seconds,
        older_protocol=row.older_protocol,
        docs_url=row.docs_url,
        docs_adequate=row.docs_adequate,
        gallery_entry=row.gallery_entry,
        trust=row.trust,
        risk_level=risk.level,
        risk_reasons=list(risk.reasons),
        created_at=row.created_at,
        updated_at=row.updated_at,
        **_reported(row),
    )


def _reported(row: UpstreamServer) -> dict[str, Any]:
    return {
        "status": row.state,
        "tool_count": row.tool_count or 0,
        "exposed_count": row.exposed_count,  # type: ignore[attr-defined]  # annotated by `servers`
        "withheld_count": row.withheld_count,  # type: ignore[attr-defined]
    } | {name: getattr(row, name) for name in _SAME}


_SAME = (
    *("reason", "last_error", "last_error_at", "latency_ms", "reported_at", "protocol_version", "told_name"),
    *("told_version", "notes", "listing_note", "listed_at"),
)


def _shown(stored: Iterable[dict[str, Any]]) -> dict[str, schemas.Shown]:
    shown = [each.shown() for each in values.read(stored)]
    return {each.name: schemas.Shown(value=each.value, secret=each.secret) for each in shown}


def tried(trial: Trial) -> schemas.Tried:
    listed = trial.listing.tools if trial.listing else ()
    return schemas.Tried(
        ok=not trial.error,
        error=trial.error,
        sign_in=trial.http_status == 401,
        latency_ms=trial.latency_ms,
        protocol_version=trial.protocol_version,
        told_name=trial.server_name,
        told_version=trial.server_version,
        tool_count=len(listed) if trial.listing else None,
        tools=[each.name for each in listed[:MOST_NAMED]],
        notes=list(trial.notes),
    )


def tools(rows: Iterable[ComposedTool], *, schemas_too: bool) -> list[tool_schemas.ComposedTool]:
    """With their servers and their rows in the gate loaded."""
    found = list(rows)
    aliases = composing.proposals(found)
    return [tool_schemas.ComposedTool(**_tool(row, aliases[row.pk], schemas_too=schemas_too)) for row in found]


def _tool(row: ComposedTool, alias: str, *, schemas_too: bool) -> dict[str, Any]:
    record = row.seen
    return {
        "id": row.pk,
        "tool": row.name,
        "exposed": row.exposed,
        "alias": alias,
        "description": row.description,
        "hitl_mode": row.tool.hitl_mode if row.tool else HitlMode.REQUIRED.value,
        "prompt_template": row.tool.prompt_template if row.tool else "",
        "condition": row.tool.condition if row.tool else "",
        "deadline_seconds": row.tool.deadline_seconds if row.tool else None,
        "signed_in_only": row.tool is not None and row.tool.signed_in_only,
        "risk_level": row.risk_effective,
        "inherent_risk_level": row.risk_inherent,
        "effective_risk_level": row.risk_effective,
        "state": row.state,
        "reason": row.reason,
        "warnings": [vars(found) for found in judging.findings_of(row.warnings)],
        "problems": row.problems,
        "digest": row.seen_digest,
        "title": record.get("title") or "",
        "upstream_description": record.get("description") or "",
        "input_schema": record.get("inputSchema", {}) if schemas_too else None,
        "output_schema": record.get("outputSchema") if schemas_too else None,
        "annotations": record.get("annotations") if schemas_too else None,
    }


def whole_tool(row: ComposedTool) -> tool_schemas.WholeTool:
    return tool_schemas.WholeTool(
        **_tool(row, composing.proposals([row])[row.pk], schemas_too=True),
        server=row.server.name,
        risk_floor=row.risk_floor,
        risk_reasons=row.risk_reasons,
        accepted=_accepted(row),
        seen=_fingerprint(row, "seen", at=row.seen_at),
        differences=[_difference(found) for found in difference(row.pinned, row.seen)] if row.pinned else [],
        first_seen_at=row.first_seen_at,
        history=[event(each, records=False) for each in events(row)[:MOST_EVENTS]],
    )


def _accepted(row: ComposedTool) -> tool_schemas.Fingerprint | None:
    if not row.pinned_digest:
        return None
    by = row.accepted_by.get_username() if row.accepted_by else None
    return _fingerprint(row, "pinned", at=row.accepted_at, by=by)


def _fingerprint(row: ComposedTool, which: str, **more: Any) -> tool_schemas.Fingerprint:
    columns = {"record": which, "digest": f"{which}_digest", "profile": f"{which}_profile"}
    return tool_schemas.Fingerprint(**{"by": None} | {key: getattr(row, name) for key, name in columns.items()} | more)


def _difference(found: Any) -> tool_schemas.Difference:
    return tool_schemas.Difference(
        where=found.where, kind=found.kind, before=_plain(found.before), after=_plain(found.after)
    )


def _plain(seen: Seen | None) -> str | None:
    return seen.plain if seen else None


def events(row: ComposedTool) -> QuerySet[ToolEvent]:
    """The newest first."""
    return ToolEvent.objects.filter(tool=row).select_related("actor").order_by("-id")


def event(row: ToolEvent, *, records: bool) -> tool_schemas.HistoryEvent:
    return tool_schemas.HistoryEvent(
        id=row.pk,
        name=row.name,
        at=row.at,
        actor=row.actor.get_username() if row.actor else None,
        means=row.means,
        digest=row.digest,
        data=row.data,
        record=row.record if records else None,
    )
