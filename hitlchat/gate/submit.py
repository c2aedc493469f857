"""The one entrance: a request is checked, judged by policy, and recorded as rejected, refused, allowed or waiting."""

import reprlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from hitlchat.gate import canonical, catalog, disclosure, policy, schema
from hitlchat.gate.actor import Caller
from hitlchat.gate.crossing import in_db
from hitlchat.gate.models import Approval, Tool, ToolCall, new_id
from hitlchat.gate.status import Status
from hitlchat.gate.storable import storable
from hitlchat.gate.transition import enter


@dataclass(frozen=True)
class CallRequest:
    """`arguments` is the JSON text a model wrote, or an object. `among` narrows the catalog; None means all of it."""

    tool_name: str
    arguments: str | dict[str, Any]
    caller: Caller
    among: Collection[str] | None = None
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    position: int = 0
    model_call_id: str = ""
    user_prompt: str = ""


@dataclass(frozen=True)
class Prepared:
    """A request with the gate's answer, not yet on record."""

    request: CallRequest
    status: Status
    reason: str
    tool: Tool | None = None
    arguments: dict[str, Any] | None = None


async def submit(request: CallRequest) -> ToolCall:
    """Judge and record one call. It runs by itself if allowed; if waiting, once a person approves."""
    prepared = await prepare(request)
    return await in_db(admit)(prepared)


async def prepare(request: CallRequest) -> Prepared:
    """Judge `request` without recording anything; for callers that record several calls in one transaction."""
    tool = await in_db(_find)(request)
    if tool is None:
        return Prepared(request, Status.REJECTED, f"There is no tool named {storable(request.tool_name[:64])!r} here.")
    try:
        arguments = _arguments(tool, request.arguments)
    except schema.BadArguments as error:
        return Prepared(request, Status.REJECTED, str(error), tool)
    match await policy.verdict(tool, arguments):
        case policy.Allow(reason):
            return Prepared(request, Status.ALLOWED, reason, tool, arguments)
        case policy.Refuse(reason):
            return Prepared(request, Status.REFUSED, reason, tool, arguments)
        case policy.Ask(reason):
            return Prepared(request, Status.WAITING, reason, tool, arguments)


def admit(prepared: Prepared) -> ToolCall:
    """Put a judged request on record, with its approval if it has to wait; all of it or nothing."""
    call = _call(prepared)
    with transaction.atomic():
        if prepared.status != Status.WAITING:
            return enter(call, prepared.status, actor=prepared.request.caller.actor, data={"reason": prepared.reason})
        assert prepared.tool is not None
        return _ask(call, prepared.tool, prepared.request)


def _ask(call: ToolCall, tool: Tool, request: CallRequest) -> ToolCall:
    call.deadline = disclosure.deadline_of(tool)
    shown = disclosure.disclose(call, tool, request.caller, user_prompt=request.user_prompt)
    approval = Approval(
        id=new_id(), call=call, prompt=storable(shown["prompt"]), disclosure=shown, digest=disclosure.digest(shown)
    )
    data = {"approval": str(approval.pk), "digest": approval.digest, "reason": call.reason}
    enter(call, Status.WAITING, actor=request.caller.actor, data=data)
    approval.save(force_insert=True)
    return call


def _call(prepared: Prepared) -> ToolCall:
    request, tool = prepared.request, prepared.tool
    return ToolCall(
        tool=tool,
        tool_name=tool.name if tool else storable(request.tool_name[:64]),
        source=tool.source if tool else "",
        definition_hash=tool.definition_hash if tool else "",
        risk_level=tool.risk_level if tool else 0,
        arguments=prepared.arguments if prepared.arguments is not None else _best_reading(request.arguments),
        caller_kind=request.caller.kind,
        caller_id=request.caller.user_id,
        conversation_id=request.conversation_id,
        turn_id=request.turn_id,
        position=request.position,
        model_call_id=storable(request.model_call_id[:200]),
        rule=policy.rule_of(tool) if tool else "",
        reason=storable(prepared.reason),
    )


def _find(request: CallRequest) -> Tool | None:
    name = storable(request.tool_name)
    return catalog.tools_for(request.caller, request.among).filter(name=name).first()


def _arguments(tool: Tool, given: str | dict[str, Any]) -> dict[str, Any]:
    arguments = schema.parse_arguments(given) if isinstance(given, str) else given
    schema.validate(tool.input_schema, arguments)
    # Filled in here, so that the person sees every value that the tool will get (SR-7).
    return schema.with_defaults(tool.input_schema, arguments)


def _best_reading(given: str | dict[str, Any]) -> dict[str, Any]:
    """For the record of a rejected call; what can't be read as an object is kept as text, cut at 2,000 characters."""
    try:
        arguments = schema.parse_arguments(given) if isinstance(given, str) else given
        if len(canonical.dumps(arguments)) <= canonical.MAX_ARGUMENT_BYTES:
            return arguments
    except (schema.BadArguments, canonical.NotJson):
        pass
    text = given if isinstance(given, str) else reprlib.repr(given)
    return {"(unreadable)": text[:2000], "(characters)": len(text)}
