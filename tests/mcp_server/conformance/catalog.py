"""The suite's tools that are tools of the catalog here: rows, listed and called like any other, through the gate."""

import asyncio
from typing import Any, Final

from hitlchat.base.database import in_db
from hitlchat.gate.models import HitlMode, Tool, ToolCall
from hitlchat.gate.sources import ToolResult
from hitlchat.upstreams.client.link import Step
from hitlchat.upstreams.models import progressed

SOURCE: Final = "conformance"
CHANGED: Final = "test_simple_text"

NOTHING: Final[dict[str, Any]] = {"type": "object", "properties": {}, "additionalProperties": False}
MESSAGE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"message": {"type": "string"}},
    "required": ["message"],
}
# As the suite describes it: it looks whether all of this arrives.
EVERYTHING: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
ASKS: Final[dict[str, Any]] = {"hitl_mode": HitlMode.REQUIRED}
TOOLS: Final[dict[str, dict[str, Any]]] = {
    "test_simple_text": {},
    "test_error_handling": {},
    "test_tool_with_progress": {},
    "test_logging_tool": {},
    "test_trigger_tool_change": {},
    "json_schema_2020_12_tool": {"input_schema": EVERYTHING},
    # Their questions are those of the gate.
    "test_elicitation": ASKS | {"input_schema": MESSAGE},
    "test_streaming_elicitation": ASKS,
    "test_input_required_result_tampered_state": ASKS,
}


def add_rows() -> None:
    usual = {
        "source": SOURCE,
        "origin": "The conformance suite",
        "input_schema": NOTHING,
        "hitl_mode": HitlMode.DISABLED,
        "risk_level": 2,
        "definition_hash": "d" * 64,
        "published": True,
    }
    for name, columns in TOOLS.items():
        Tool.objects.create(name=name, description=f"What the suite calls {name}.", **usual | columns)


class ConformanceSource:
    """What the tools do once the gate lets them."""

    async def execute(self, call: ToolCall) -> ToolResult:
        match call.tool_name:
            case "test_simple_text":
                return ToolResult(value="This is a simple text response for testing.")
            case "test_error_handling":
                return ToolResult.failure("tool", "This tool intentionally returns an error for testing")
            case "test_tool_with_progress":
                await _tell_progress(call)
            case "test_trigger_tool_change":
                await in_db(_change)(call)
        return ToolResult(value="done")


async def _tell_progress(call: ToolCall) -> None:
    for percent in (0, 50, 100):
        step = Step(percent, 100, f"{percent} percent")
        progressed.send_robust(sender=ConformanceSource, call_id=call.pk, conversation_id=None, step=step)
        await asyncio.sleep(0.2)


def _change(call: ToolCall) -> None:
    Tool.objects.filter(name=CHANGED).update(description=f"Changed by {call.pk}.")
