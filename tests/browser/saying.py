"""A source of tools whose previews are what a file says, which a test writes; the file is named by PREVIEWS."""

import json
import os
from pathlib import Path
from typing import Any

from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.sources import Preview, ToolResult


class SayingSource:
    async def preview(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> Preview:
        said: dict[str, Any] = json.loads(_read())[tool.name]
        return Preview(error=said["error"]) if "error" in said else Preview.of(said["value"])

    async def execute(self, call: ToolCall) -> ToolResult:
        return ToolResult(value=f"{call.tool_name} ran")


def _read() -> str:
    return Path(os.environ["PREVIEWS"]).read_text(encoding="utf-8")
