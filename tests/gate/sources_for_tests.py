"""Sources of tools that tell whether they were entered, and that fail in every way a source can."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Final

from hitlchat.gate.models import ToolCall
from hitlchat.gate.sources import ToolResult

HERE: Final = "tests.gate.sources_for_tests"
SOURCES: Final = {
    "recording": f"{HERE}.RecordingSource",
    "raising": f"{HERE}.RaisingSource",
    "failing": f"{HERE}.FailingSource",
    "nonsense": f"{HERE}.NonsenseSource",
    "hanging": f"{HERE}.HangingSource",
    "appending": f"{HERE}.AppendingSource",
    "unmakeable": f"{HERE}.UnmakeableSource",
    "nowhere": f"{HERE}.NoSuchSource",
}

# Every call that reached a tool, in whichever source.
entered: list[ToolCall] = []


class RecordingSource:
    async def execute(self, call: ToolCall) -> ToolResult:
        entered.append(call)
        return ToolResult(value="done", output="printed")


class RaisingSource:
    async def execute(self, call: ToolCall) -> ToolResult:
        entered.append(call)
        raise RuntimeError("the secret of the source")


class FailingSource:
    async def execute(self, call: ToolCall) -> ToolResult:
        entered.append(call)
        return ToolResult.failure("error", "no such order", 3)


class NonsenseSource:
    async def execute(self, call: ToolCall) -> ToolResult:
        entered.append(call)
        return ToolResult(value=float("nan"), output="half a character \ud800 and NUL \x00")


class UnmakeableSource:
    def __init__(self) -> None:
        raise RuntimeError("not configured")


class HangingSource:
    """Never comes back."""

    async def execute(self, call: ToolCall) -> ToolResult:
        entered.append(call)
        await asyncio.Event().wait()
        return ToolResult(value="never")


class AppendingSource:
    """Has its effect, which can be counted afterwards; then the process dies, if it is to die there."""

    async def execute(self, call: ToolCall) -> ToolResult:
        _append(Path(os.environ["EFFECTS"]), f"{call.pk}\n")
        if os.environ["DIES"] == "in the tool":
            os.kill(os.getpid(), signal.SIGKILL)
        return ToolResult(value="done")


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="ascii") as file:
        file.write(text)
