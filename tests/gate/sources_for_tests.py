"""Sources of tools that tell whether they were entered, and that fail in every way a source can."""

import asyncio
import os
import signal
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from hitlchat.base.problems import Invalid
from hitlchat.gate import contents
from hitlchat.gate import tools as gate
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.sources import Preview, ToolResult

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
    "previewing": f"{HERE}.SayingSource",
    "dying": f"{HERE}.DyingSource",
    "picturing": f"{HERE}.PicturingSource",
    "going": f"{HERE}.GoingSource",
}

# A condition that the recording source does not take.
UNWANTED: Final = "not True"
# Every call that reached a tool, in whichever source.
entered: list[ToolCall] = []
# What the next previews are, one after the other; the last one stays. Exceptions are raised, functions called.
previews: list[Any] = []
# What was looked at: arguments, and for whom.
looked: list[tuple[dict[str, Any], Caller]] = []


class RecordingSource:
    def hold(self, tools: Collection[UUID]) -> None:
        """Lock nothing before the rows of tools."""

    def configure(self, tool: UUID, settings: Mapping[str, Any], actor: Actor) -> None:
        if settings.get("condition") == UNWANTED:
            raise Invalid({"condition": "Not this one."})
        gate.change(tool, settings, actor)

    async def execute(self, call: ToolCall) -> ToolResult:
        entered.append(call)
        return ToolResult(value="done", output="printed")


class PicturingSource:
    """Gives a picture."""

    gives_blocks = True

    async def execute(self, call: ToolCall) -> ToolResult:
        entered.append(call)
        digest = contents.digest(b"picture")
        block = {"type": "image", "mimeType": "image/png", "bytes": len(b"picture"), "sha256": digest}
        return ToolResult(value={"content": [block]}, attachments={digest: b"picture"})


class GoingSource:
    """Is never there."""

    def why_gone(self, _tool: UUID) -> str:
        return "its server shop does not answer"

    async def execute(self, call: ToolCall) -> ToolResult:
        entered.append(call)
        return ToolResult(value="done")


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


class SayingSource(RecordingSource):
    """Says beforehand what it would do."""

    async def preview(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> Any:
        looked.append((arguments, caller))
        said = previews.pop(0) if len(previews) > 1 else previews[0]
        if isinstance(said, Exception):
            raise said
        return await said(arguments) if callable(said) else said


class DyingSource(RecordingSource):
    """Its effect can be counted, its preview stays the same, and the process dies while it is made, if it is to."""

    async def preview(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> Preview:
        if os.environ.get("DIES") == "in the preview":
            os.kill(os.getpid(), signal.SIGKILL)
        return Preview(text="as ever")

    async def execute(self, call: ToolCall) -> ToolResult:
        return await AppendingSource().execute(call)


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
