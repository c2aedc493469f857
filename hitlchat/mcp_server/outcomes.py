"""Outcomes for a client, as MCP wants results and schemas: always objects."""

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import mcp_types as types
from django.conf import settings
from mcp.shared.inbound import X_MCP_HEADER_KEY
from pydantic import TypeAdapter

from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.base.schemas import subschemas
from hitlchat.gate import contents, decide, results, schema
from hitlchat.gate.models import Decision, Tool, ToolCall, Verdict
from hitlchat.gate.status import Status

_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)

DEFINITIONS = ("$defs", "definitions")
# Of what stands in them, the keys are names, or it is no schema at all.
NAMED = (*DEFINITIONS, "properties", "patternProperties", "dependentSchemas")
DATA = ("const", "enum", "default", "examples")
CALL, STATUS, APPROVAL = "hitlchat/call", "hitlchat/status", "hitlchat/approval"
MISFIT = (
    "The call was executed and must not be repeated, but its result is too large, or does not fit the "
    "tool's output schema. As text: "
)
INTERNAL = "An error in hitlchat, not in the tool, ended the call. Any waiting approval was withdrawn."
USED = "This question was already answered. The later answer did not count, and nothing was executed for it."
WAITS = (
    "The call waits for a person's approval and was not executed. A signed-in person decides at the given "
    "URL. To get the outcome, make the same call again, with the same arguments."
)
# Of a result, in characters.
SMALL = 4 * 1024
MOST_WAITING = 50
NOBODY_TO_ASK = (
    "It needs a person's approval, this client cannot ask its user (elicitation), and its token allows no other way."
)
TOO_MANY = f"{MOST_WAITING} calls of this token wait for an answer already; let those be answered first."
# What is refused since nobody could be asked, after the gate's policies.
NOT_HERE = {
    NOBODY_TO_ASK: "This client's token does not allow calls to wait for a person. The call was not executed.",
    TOO_MANY: "Too many calls of this client's token are waiting for a person. The call was not executed.",
}
RUNS = "The call is still executing. To get the outcome, make the same call again, with the same arguments."


def input_schema(tool: Tool) -> dict[str, Any]:
    """Return the schema without an upstream server's wish to see arguments in HTTP headers: what is between it and
    is not between ours and us, and who asks for headers must check them.
    """
    return {"type": "object", **_without_headers(tool.input_schema)}


def output_schema(tool: Tool) -> dict[str, Any] | None:
    """Return the schema of `structured`; None if the tool has none, or none for an object."""
    schema: dict[str, Any] | None = tool.output_schema
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "object":
        return schema
    inner = {key: value for key, value in schema.items() if key not in (*DEFINITIONS, "$schema", "$id")}
    outer = {key: schema[key] for key in DEFINITIONS if key in schema}
    # A part of the schema keeps its address in its definitions, and at no other place.
    references = [part.schema.get(key) for part in subschemas(schema) for key in ("$ref", "$dynamicRef")]
    if any(isinstance(each, str) and not each.startswith(("#/$defs/", "#/definitions/")) for each in references):
        return None
    return {**outer, "type": "object", "properties": {"result": inner}, "required": ["result"]}


def structured(call: ToolCall) -> dict[str, Any] | None:
    """The result of a call that succeeded, as an object; None if it is none and nobody was told that it would be."""
    schema = call.tool.output_schema if call.tool is not None else None
    value = canonical.whole(contents.structured(call))
    if isinstance(schema, dict) and schema.get("type") != "object":
        return {"result": value}
    return value if isinstance(value, dict) else None


def most_text() -> results.Bound:
    """Return the bound of one text in a result: as much as the result of a tool may have at all."""
    return results.Bound(int(settings.TOOL_RESULT_KIB) * 1024, "TOOL_RESULT_KIB")


def content_block(block: contents.Block, data: Mapping[str, bytes]) -> types.ContentBlock:
    """The block as it came, or in words where its bytes are not there."""
    if block["type"] == contents.UNREADABLE:
        return types.TextContent(type="text", text=most_text().cut(canonical.whole(str(block["text"]))))
    whole = dict(canonical.whole(block))
    is_resource = block["type"] == "resource"
    if "text" in block:
        whole["text"] = most_text().cut(str(whole["text"]))
    if "bytes" in block:
        if (found := data.get(block.get("sha256", ""))) is None:
            return types.TextContent(type="text", text=f"[{contents.in_words(block)}]")
        whole["blob" if is_resource else "data"] = base64.b64encode(found).decode()
    if is_resource:
        whole = {"type": "resource", "resource": whole, "annotations": block.get("annotations")}
    return _BLOCK.validate_python(whole)


async def outcome_of(call: ToolCall) -> types.CallToolResult:
    # One that nobody was asked about has no answers of people to tell of.
    if call.deadline is not None or not ToolCall.tool.is_cached(call):
        call = await in_db(_read)(call.pk)
    matter = results.matter(call, edited=_is_edited(call))
    templates = await in_db(results.in_force)(call.tool_id) if matter else results.OURS
    data = await in_db(contents.data)(call) if contents.attached(call) else {}
    if canonical.is_short(call.result, SMALL) and not data:
        return _result(call, templates, data)
    # Results may be large, and checking them must keep nobody waiting.
    return await asyncio.to_thread(_result, call, templates, data)


def pending(call_id: UUID, address_of: Callable[[UUID], str]) -> types.CallToolResult | None:
    """Return that the outcome is not there yet, as an error, since a result would have to fit; None if it is there."""
    call = _read(call_id)
    if call.settled:
        return None
    waits = call.status == Status.WAITING
    facts = {"status": call.status, "message": WAITS if waits else RUNS}
    more = {APPROVAL: address_of(call.approval.pk)} if waits else {}
    if waits:
        facts["approval"] = more[APPROVAL]
    return _error(canonical.pretty(facts), call, **more)


def answered_before(call_id: UUID) -> types.CallToolResult:
    call = _read(call_id)
    facts = {"status": call.status, "message": USED, "outcome": Status(call.status).label.lower()}
    return _error(canonical.pretty(facts), call)


def internal() -> types.CallToolResult:
    return types.CallToolResult(content=[_text(INTERNAL)], is_error=True)


def _without_headers(part: Any, *, is_named: bool = False) -> Any:
    if isinstance(part, list):
        return [_without_headers(item) for item in part]
    if not isinstance(part, dict):
        return part
    if is_named:
        return {name: _without_headers(item) for name, item in part.items()}
    rest = {key: item for key, item in part.items() if key != X_MCP_HEADER_KEY}
    return {key: item if key in DATA else _without_headers(item, is_named=key in NAMED) for key, item in rest.items()}


def _read(call_id: UUID) -> ToolCall:
    rows = ToolCall.objects.select_related("tool", "approval").prefetch_related("approval__decisions")
    return rows.get(pk=call_id)


def _decisions(call: ToolCall) -> list[Decision]:
    was_asked = call.deadline is not None and hasattr(call, "approval")
    return list(call.approval.decisions.all()) if was_asked else []


def _is_edited(call: ToolCall) -> bool:
    return any(decision.edited_arguments is not None for decision in _decisions(call))


def _result(call: ToolCall, templates: results.Texts, data: dict[str, bytes]) -> types.CallToolResult:
    decisions = _decisions(call)
    reason, edited = decide.given(decisions), _is_edited(call)
    text = results.for_model(
        call,
        feedback=reason,
        edited=edited,
        suggested=any(each.verdict == Verdict.SUGGEST for each in decisions),
        templates=templates,
        bound=most_text(),
    )
    if call.status == Status.REFUSED and call.reason in NOT_HERE:
        # No policy did, which is what it says elsewhere.
        facts = {"status": call.status, "message": NOT_HERE[call.reason], "executed": False, "reason": call.reason}
        text = canonical.pretty(facts)
    declared = output_schema(call.tool) if call.tool is not None else None
    if call.status == Status.ANSWERED and declared is None:
        return types.CallToolResult(content=[_text(text)], _meta=_meta(call))
    # What a person says in the tool's place does not fit its schema, which clients check of all that is no error.
    if call.status != Status.SUCCEEDED:
        return _error(text, call)
    value = structured(call)
    if declared is not None and not _fits(declared, value):
        return _error(MISFIT + text, call)
    if declared is None and not _fits({}, value):
        value = None
    content = _content(call, text, data, is_told=edited or bool(reason))
    return types.CallToolResult(content=content, structured_content=value, _meta=_meta(call))


def _content(call: ToolCall, text: str, data: dict[str, bytes], *, is_told: bool) -> list[types.ContentBlock]:
    """The blocks as they came. `is_told`: a person changed the arguments or said something, so `text` says so, and
    holds what is text in them.
    """
    blocks = contents.blocks(call)
    if blocks is None:
        return [_text(text)]
    if not is_told:
        return [content_block(block, data) for block in blocks]
    in_text = {"text", contents.UNREADABLE}
    return [_text(text), *(content_block(block, data) for block in blocks if block["type"] not in in_text)]


def _fits(declared: dict[str, Any], value: dict[str, Any] | None) -> bool:
    """Return whether it fits, also in size: it is the same limit as for arguments."""
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
    return types.TextContent(type="text", text=canonical.whole(text))
