"""The page of a session: all of it, or what has changed since it was last drawn."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import mcp_types as types
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.urls import Resolver404, resolve, reverse

from hitlchat.accounts.models import hashed
from hitlchat.base import canonical
from hitlchat.base.visible import see
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status
from hitlchat.mcp_server.inspector.acting import Call, Question
from hitlchat.mcp_server.inspector.sessions import Session
from hitlchat.mcp_server.inspector.wire import shown
from tools_studio import argument_form


@dataclass(frozen=True)
class Made:
    """A call, and the path of its approval's page; empty if nobody is asked there. `waits`: someone still is."""

    call: Call
    record: str = ""
    waits: bool = False


def of(session: Session, calls: list[Call]) -> list[Made]:
    asked = {question.call.number for question in list(session.acting.questions.values()) if question.call}
    going = {call.number for call in calls if call.task is not None}
    # Only the result says which call on record it is; till then it is one of the same token that waits.
    by_tool = {
        row.call.tool_name: row for row in _waiting(session, [c.tool for c in calls if c.number in going - asked])
    }
    by_call: dict[UUID | None, Approval] = {row.call_id: row for row in _known(session, calls)}
    found = [by_tool.get(call.tool) if call.number in going else by_call.get(call.call_id) for call in calls]
    return [_made(call, approval) for call, approval in zip(calls, found, strict=True)]


def _made(call: Call, approval: Approval | None) -> Made:
    if approval is None:
        return Made(call)
    return Made(call, reverse("approval", args=[approval.pk]), approval.call.status == Status.WAITING)


def _known(session: Session, calls: list[Call]) -> QuerySet[Approval]:
    own = Approval.objects.filter(call__caller_id=session.wish.owner_id).select_related("call")
    return own.filter(call_id__in=[call.call_id for call in calls if call.call_id])


def _waiting(session: Session, tools: list[str]) -> QuerySet[Approval]:
    own = Approval.objects.filter(call__caller_id=session.wish.owner_id).select_related("call")
    same_token = own.filter(call__mcp__token__digest=hashed(session.wish.token.secret))
    return same_token.filter(call__status=Status.WAITING, call__tool_name__in=tools).order_by("call__created_at")


RISK, RISK_LEVEL, APPROVAL = "hitlchat/risk", "hitlchat/riskLevel", "hitlchat/approval"
SIGNED_IN_ONLY = "hitlchat/signedInOnly"
MOST_FIELDS = 60


@dataclass(frozen=True)
class ToolView:
    name: str
    title: str
    description: str
    risk: int | None
    approval: str
    signed_in_only: bool
    hints: tuple[str, ...]
    input_schema: str
    output_schema: str
    meta: str


@dataclass(frozen=True)
class Asks:
    """A question, and the page of ours that it sends its user to, if it is one."""

    question: Question
    own_path: str


def whole(session: Session, open_tool: str, typed: QueryDict | None = None) -> dict[str, Any]:
    return {**since(session, 0), **pane(session, open_tool, typed), "whole": True}


def since(session: Session, seen: int) -> dict[str, Any]:
    """The parts that changed after this number of the recording."""
    acting, recording = session.acting, session.recording
    # First, so that what happens meanwhile is drawn again rather than never.
    is_open, last = session.is_open, recording.last
    tools_changed = acting.changed["tools"] > seen
    calls = [call for call in list(acting.calls.values()) if call.changed > seen]
    return {
        "session": session,
        "is_open": is_open,
        "last": last,
        "state_changed": not is_open or session.changed > seen,
        "tools_changed": tools_changed,
        "questions_changed": acting.changed["questions"] > seen,
        "tools": [view(tool) for tool in acting.tools] if acting.tools is not None and tools_changed else None,
        "asks": [Asks(each, own_path(session, each.address)) for each in list(acting.questions.values())],
        "new_calls": of(session, [call for call in reversed(calls) if call.born > seen]),
        "changed_calls": of(session, [call for call in calls if call.born <= seen]),
        "lines": [line for line in list(recording.lines) if seen < line.number <= last],
    }


def pane(session: Session, name: str, typed: QueryDict | None = None) -> dict[str, Any]:
    """The tool of this name, with the form made from its schema: none if the schema is not one that fits a form."""
    found = tool_named(session, name)
    if found is None:
        return {"tool": None, "asked_for": name}
    fields, json = form_fields(found.input_schema), sample(found)
    if typed is not None and "json" in typed:
        json = typed.get("json", "")
    elif typed is not None and fields is not None:
        fields = [replace(field, value=typed.get(field.html_name, "")) for field in fields]
    with_labels = None if fields is None else [(field, _labelled(field.choices)) for field in fields]
    return {"tool": view(found), "fields": with_labels, "json": json}


def _labelled(choices: tuple[str, ...]) -> list[tuple[str, str]]:
    """Options of a list hold nothing but text."""
    return [(choice, see(choice).plain) for choice in choices]


def tool_named(session: Session, name: str) -> types.Tool | None:
    return next((tool for tool in session.acting.tools or () if tool.name == name), None)


def form_fields(schema: dict[str, Any]) -> list[argument_form.Field] | None:
    """None when it can only be written as JSON: schemas of upstream servers are whatever those send."""
    if len(schema.get("properties", ())) > MOST_FIELDS:
        return None
    try:
        return argument_form.fields(schema, None)
    except (AttributeError, KeyError, TypeError):
        return None


def sample(tool: types.Tool) -> str:
    """The defaults, as JSON to go on from."""
    parts = tool.input_schema.get("properties")
    parts = parts if isinstance(parts, dict) else {}
    return shown(
        {name: part["default"] for name, part in parts.items() if isinstance(part, dict) and "default" in part}
    )


def view(tool: types.Tool) -> ToolView:
    meta = tool.meta or {}
    level = meta.get(RISK_LEVEL)
    hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    return ToolView(
        tool.name,
        tool.title or "",
        tool.description or "",
        level if level in range(6) else None,
        str(meta.get(APPROVAL, "")),
        meta.get(SIGNED_IN_ONLY) is True,
        tuple(f"{name}: {canonical.pretty(value)}" for name, value in hints.items()),
        shown(tool.input_schema),
        shown(tool.output_schema) if tool.output_schema else "",
        shown(meta) if meta else "",
    )


def own_path(session: Session, address: str) -> str:
    """The path of an address that is an approval's page of ours, by the name under which the browser knows us."""
    try:
        parts = urlsplit(address)
        found = resolve(parts.path)
    except (ValueError, Resolver404):
        return ""
    is_ours = parts.netloc == session.wish.address.host and found.url_name == "approval"
    return parts.path if is_ours else ""


def is_part(request: HttpRequest) -> bool:
    """Htmx asks for a part of a page."""
    return request.headers.get("HX-Request") == "true"
