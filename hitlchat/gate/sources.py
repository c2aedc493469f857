"""Where tools come from, as far as the gate knows: something that can execute a call it has cleared."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from hitlchat.gate.models import ToolCall


@dataclass(frozen=True)
class ToolResult:
    """What came back. `error` is None on success, else {kind, message, line?}; `output` is what the tool printed."""

    value: Any = None
    output: str = ""
    error: dict[str, Any] | None = field(default=None)

    @classmethod
    def failure(cls, kind: str, message: str, line: int | None = None, output: str = "") -> "ToolResult":
        return cls(output=output, error={"kind": kind, "message": message, "line": line})


class Source(Protocol):
    async def execute(self, call: ToolCall) -> ToolResult:
        """Run the tool of `call` with its arguments, once. Only perform.py calls this, after the gate said yes."""


@cache
def source(key: str) -> Source:
    """The source registered under `key` in TOOL_SOURCES; KeyError when there is none."""
    made: Source = import_string(settings.TOOL_SOURCES[key])()
    return made
