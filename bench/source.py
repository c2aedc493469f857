"""A tool whose result is the moment in which it was entered, which a bench in another process needs to know."""

import time

from hitlchat.gate.models import ToolCall
from hitlchat.gate.sources import ToolResult


class BenchSource:
    async def execute(self, call: ToolCall) -> ToolResult:  # noqa: ARG002
        return ToolResult(value={"at": time.time()})
