"""Functions of the project, as the gate executes them: once, within their time, and told as it was."""

import asyncio
import inspect
from typing import Any

from hitlchat.base.database import in_db
from hitlchat.gate import perform
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.sources import Preview, ToolResult
from hitlchat.project_tools import catalogue, running
from hitlchat.project_tools.catalogue import ProjectTool
from hitlchat.project_tools.running import Job

OTHER_CODE = "This server process has other code for it. Restart the server."
# How long a function that was told to stop may take to do so.
GRACE_SECONDS = 5.0

Work = asyncio.Task[ToolResult]


class ProjectSource:
    async def execute(self, call: ToolCall) -> ToolResult:
        made = _of_definition(call.tool_name, call.definition_hash)
        if made is None:
            return ToolResult.failure("changed", f"It was not run: {OTHER_CODE}")
        extra = {made.signature.caller: await in_db(_caller)(call)} if made.signature.caller else {}
        job = Job(made.declaration.function, made.signature, call.arguments, extra, f"{made.path}, call {call.pk}")
        # A task of its own, so that neither a time-out nor the function's own tricks end the one that records.
        work = asyncio.create_task(running.run(job))
        try:
            return await _within(work, made, call)
        finally:
            work.cancel()

    async def preview(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> Preview | None:
        made = _of_definition(tool.name, tool.definition_hash)
        if made is None:
            return Preview(error=OTHER_CODE)
        if made.previewing is None:
            return None
        extra = {made.previewing.caller: caller} if made.previewing.caller else {}
        job = Job(made.previewing.function, made.signature, arguments, extra, f"the preview of {made.path}")
        seen = await running.run(job)
        return Preview.of(seen.value) if seen.error is None else Preview(error=seen.error["message"])


def _of_definition(name: str, definition_hash: str) -> ProjectTool | None:
    """Another process of this installation may have started with newer code, and this one must not run the old."""
    made = catalogue.tools().get(name)
    return made if made is not None and made.definition_hash == definition_hash else None


async def _within(work: Work, made: ProjectTool, call: ToolCall) -> ToolResult:
    seconds = made.chosen.timeout_seconds
    if await _ends(work, seconds):
        return _outcome(work, "It was not finished: the function cancelled itself.")
    if inspect.iscoroutinefunction(made.declaration.function):
        work.cancel()
        if await _ends(work, GRACE_SECONDS):
            told = f"It took longer than {seconds:g} s and was stopped there. What it had done by then stands."
            return _outcome(work, told)
    # Nothing stops a thread. To say that it failed, while it may be about to succeed, would be untrue.
    await perform.give_up(call.pk, f"it took longer than {seconds:g} s, cannot be stopped, and may still go on")
    await asyncio.wait({work})
    return _outcome(work, "It was stopped, later than asked. What it had done by then stands.")


async def _ends(work: Work, seconds: float) -> bool:
    done, _ = await asyncio.wait({work}, timeout=seconds)
    return bool(done)


def _outcome(work: Work, told: str) -> ToolResult:
    return ToolResult.failure("timeout", told) if work.cancelled() else work.result()


def _caller(call: ToolCall) -> Caller:
    kind: Any = call.caller_kind
    return Caller(kind, call.caller_id, call.caller.get_username())
