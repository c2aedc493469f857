"""A source of tools that notes each execution, for tests that must know whether and when a tool was entered."""

import asyncio
from typing import Any, Final

from hitlchat.gate import stated, tools
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent, Tool, ToolCall
from hitlchat.gate.sources import ToolResult
from tests.waiting import soon

SOURCES: Final = {
    "studio": "tools_studio.source.StudioSource",
    "recorder": "tests.recorder.RecorderSource",
    "agent": "hitlchat.agent.agents.AgentSource",
}
SCHEMA: Final = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "n": {"type": "integer"}},
    "additionalProperties": False,
}


class Recorder:
    """`entered` has (tool, arguments) in the order of entering. A held tool stays inside until it is let go."""

    def __init__(self) -> None:
        self.entered: list[tuple[str, dict[str, Any]]] = []
        self.results: dict[str, ToolResult | Exception] = {}
        self._held: dict[str, asyncio.Event] = {}

    def hold(self, name: str) -> None:
        self._held[name] = asyncio.Event()

    def let_go(self, name: str) -> None:
        self._held.pop(name).set()

    async def entry(self, name: str, times: int = 1) -> None:
        """Wait until the tool has been entered so often."""
        await soon(lambda: [tool for tool, _ in self.entered].count(name) >= times, f"{name} is entered")

    async def execute(self, call: ToolCall) -> ToolResult:
        self.entered.append((call.tool_name, call.arguments))
        if held := self._held.get(call.tool_name):
            await held.wait()
        result = self.results.get(call.tool_name, ToolResult(f"{call.tool_name} did {call.arguments}"))
        if isinstance(result, Exception):
            raise result
        return result


current = Recorder()


class RecorderSource:
    async def execute(self, call: ToolCall) -> ToolResult:
        return await current.execute(call)


def start_over() -> Recorder:
    global current  # noqa: PLW0603
    current = Recorder()
    return current


def recorded_tool(name: str, hitl_mode: str = "REQUIRED", **columns: Any) -> Tool:
    """A published tool of this source: it takes an optional `text` and an optional integer `n`."""
    given = {"input_schema": SCHEMA, "source": "recorder", "origin": "a test", "definition_hash": f"hash of {name}"}
    return keep(Tool(name=name, hitl_mode=hitl_mode, published=True, **given | columns))


def keep(tool: Tool) -> Tool:
    """Store a tool without an event, which would fill the record; once a server has begun its record, with one."""
    if AuditEvent.objects.filter(name=stated.BEGUN).exists():
        return tools.add(tool, SYSTEM)
    tool.save(force_insert=True)
    return tool
