"""Trying a tool's effect preview in the Studio: what the approver would be shown, with nobody being asked."""

from typing import Any

from hitlchat.gate import preview, schema
from hitlchat.gate.actor import Caller
from hitlchat.gate.effect import Effect, effect
from hitlchat.gate.models import Tool


async def look(tool: Tool, arguments: dict[str, Any], caller: Caller) -> Effect | None:
    """The preview of a call with these arguments as its card would show it; None if the tool has none. BadArguments."""
    shown = await preview.make(tool, await schema.accepted(tool.input_schema, arguments), caller)
    return effect(shown) if shown else None
