"""What a client is told about its call: the result, or in which of all ways it came to none."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import mcp_types as types

from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.gate import contents, decide, results, schema, texts
from hitlchat.gate.models import Decision, ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server import shapes, submitting

CALL, STATUS, APPROVAL = "hitlchat/call", "hitlchat/status", "hitlchat/approval"

MISFIT = (
    "It was executed, and must not be repeated, but its result is too large, or not as the tool declares it. As text: "
)
INTERNAL = "An error in hitlchat, not in the tool, ended the call. What waited for approval was withdrawn."
USED = "This question had its answer before, so this one did not count, and nothing was run for it."
WAITS = (
    "It waits for a person's approval and was not executed. Someone who is signed in decides at the address given."
    " Make the same call again, with the same arguments, to get its outcome."
)
# Of a result, in characters.
SMALL = 4 * 1024
# What submitting refuses by itself.
NOT_HERE = {
    submitting.NOBODY_TO_ASK: "The token of this client does not let calls wait for a person. It was not executed.",
    submitting.TOO_MANY: "Too many calls of this client's token wait for a person. It was not executed.",
}
RUNS = "It is still executing. Make the same call again, with the same arguments, to get its outcome."


async def of(call: ToolCall) -> types.CallToolResult:
    # One that nobody was asked about has no answers of people to tell of.
    if call.deadline is not None or not ToolCall.tool.is_cached(call):
        call = await in_db(_read)(call.pk)
    matter = texts.matter(call, edited=_is_edited(call))
    templates = await in_db(texts.in_force)(call.tool_id) if matter else results.OURS
    data = await in_db(contents.data)(call) if contents.attached(call) else {}
    if canonical.is_short(call.result, SMALL) and not data:
        return _told(call, templates, data)
    # Results may be large, and checking them must keep nobody waiting.
    return await asyncio.to_thread(_told, call, templates, data)


def pending(call_id: UUID, address_of: Callable[[UUID], str]) -> types.CallToolResult | None:
    """Not there yet. An error to MCP, since it has no word for it, and a result would have to fit the tool's schema.

    None: it is there, since just now.
    """
    call = _read(call_id)
    if call.settled:
        return None
    waits = call.status == Status.WAITING
    facts = {"status": call.status, "message": WAITS if waits else RUNS}
    more = {APPROVAL: address_of(call.approval.pk)} if waits else {}
    if waits:
        facts["approval"] = more[APPROVAL]
    return _error(canonical.pretty(facts), call, **more)


def is_pending(result: types.CallToolResult) -> bool:
    return APPROVAL in (result.meta or {})


def answered_before(call_id: UUID) -> types.CallToolResult:
    call = _read(call_id)
    told = {"status": call.status, "message": USED, "outcome": Status(call.status).label.lower()}
    return _error(canonical.pretty(told), call)


def internal() -> types.CallToolResult:
    return types.CallToolResult(content=[_text(INTERNAL)], is_error=True)


def _read(call_id: UUID) -> ToolCall:
    rows = ToolCall.objects.select_related("tool", "approval").prefetch_related("approval__decisions")
    return rows.get(pk=call_id)


def _decisions(call: ToolCall) -> list[Decision]:
    was_asked = call.deadline is not None and hasattr(call, "approval")
    return list(call.approval.decisions.all()) if was_asked else []


def _is_edited(call: ToolCall) -> bool:
    return any(decision.edited_arguments is not None for decision in _decisions(call))


def _told(call: ToolCall, templates: texts.Texts, data: dict[str, bytes]) -> types.CallToolResult:
    decisions = _decisions(call)
    text = results.for_model(
        call,
        decline_reason=decide.given(decisions),
        edited=_is_edited(call),
        templates=templates,
        bound=shapes.most_text(),
    )
    if call.status == Status.REFUSED and call.reason in NOT_HERE:
        # No policy did, which is what it says elsewhere.
        told = {"status": call.status, "message": NOT_HERE[call.reason], "executed": False, "reason": call.reason}
        text = canonical.pretty(told)
    if call.status != Status.SUCCEEDED:
        return _error(text, call)
    value = shapes.structured(call)
    declared = shapes.output_schema(call.tool) if call.tool is not None else None
    if declared is not None and not _fits(declared, value):
        return _error(MISFIT + text, call)
    if declared is None and not _fits({}, value):
        value = None
    return types.CallToolResult(content=_content(call, text, data), structured_content=value, _meta=_meta(call))


def _content(call: ToolCall, text: str, data: dict[str, bytes]) -> list[types.ContentBlock]:
    """The blocks as they came; where a person changed the arguments, `text` says so and holds what is text in them."""
    blocks = contents.blocks(call)
    if blocks is None:
        return [_text(text)]
    is_edited = _is_edited(call)
    others = [shapes.block(block, data) for block in blocks if not (is_edited and block["type"] == "text")]
    return [_text(text), *others] if is_edited else others


def _fits(declared: dict[str, Any], value: dict[str, Any] | None) -> bool:
    """Also in size: it is the same limit as for arguments."""
    if value is None:
        return False
    try:
        schema.validate(declared, value)
    except schema.BadArguments:
        return False
    return True


def _error(text: str, call: ToolCall, **more: str) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(text)], is_error=True, _meta=_meta(call) | more)


def _meta(call: ToolCall) -> dict[str, Any]:
    return {CALL: str(call.pk), STATUS: call.status}


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)
