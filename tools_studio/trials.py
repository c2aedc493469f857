"""A tool's test runs and previews, and what they prove: one that passed since its last edit lets it be published."""

from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from hitlchat.gate import preview, schema
from hitlchat.gate.actor import Caller
from hitlchat.gate.effect import Effect, effect
from hitlchat.gate.models import CallerKind, Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit


async def attempt(tool_name: str, arguments: dict[str, Any], caller: Caller, seconds: float) -> ToolCall:
    """Call the tool like everyone else, through the gate: settled, waiting for an answer, or still going on after
    `seconds`."""
    call = await submit(CallRequest(tool_name, arguments, caller))
    return await settled(call.pk, seconds) if call.status == Status.ALLOWED else call


def passed(tool: Tool) -> ToolCall | None:
    """The last test run of exactly this definition that succeeded."""
    return _passed(tool=tool, definition_hash=tool.definition_hash).order_by("-created_at").first()


def with_tested(tools: QuerySet[Tool]) -> QuerySet[Tool]:
    """Each with `tested`: has a test run of it as it is now succeeded?"""
    return tools.annotate(tested=Exists(_passed(tool=OuterRef("pk"), definition_hash=OuterRef("definition_hash"))))


def _passed(**which: Any) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(**which, caller_kind=CallerKind.STUDIO, status=Status.SUCCEEDED)


async def look(tool: Tool, arguments: dict[str, Any], caller: Caller) -> Effect | None:
    """The preview of a call with these arguments as its card would show it; None if the tool has none. BadArguments."""
    shown = await preview.make(tool, await schema.accepted(tool.input_schema, arguments), caller)
    return effect(shown) if shown else None
