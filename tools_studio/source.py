"""Authored tools, as the gate executes them: code in the sandbox, with the host functions it was granted."""

from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hitlchat import sandbox
from hitlchat.gate.crossing import in_db
from hitlchat.gate.models import ToolCall
from hitlchat.gate.sources import ToolResult
from tools_studio import capabilities, signature, store
from tools_studio.capabilities import ALL_NAMES, Capabilities
from tools_studio.fetching import FetchPolicy, fetch
from tools_studio.models import Script


class StudioSource:
    async def execute(self, call: ToolCall) -> ToolResult:
        script = await in_db(_script)(call)
        if script is None:
            return ToolResult.failure("changed", "The tool was changed or deleted just now. It was not run.")
        try:
            arguments = signature.coerce(script.tool.input_schema, call.arguments)
        except ValueError as error:
            return ToolResult.failure("arguments", f"It was not run: {error}")
        granted = capabilities.parse(script.capabilities)
        report = await sandbox.run(
            script.code,
            arguments,
            grants=host_functions(granted, script.group),
            known=ALL_NAMES,
        )
        if report.fault is not None:
            return ToolResult.failure(report.fault.kind, report.fault.message, report.fault.line, report.output)
        return ToolResult(value=report.result, output=report.output)


def host_functions(granted: Capabilities, group: str) -> dict[str, sandbox.HostFunction]:
    """What the tool may import from `hitl`, and nothing else."""
    offered: dict[str, sandbox.HostFunction] = {"now": _now, **store.grants(group)}
    if granted.hosts:
        offered["fetch"] = partial(fetch, FetchPolicy(hosts=granted.hosts))
    return {name: offered[name] for name in granted.names()}


async def _now(timezone: str = "UTC") -> datetime:
    try:
        return datetime.now(ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"now: {timezone!r} is no time zone name such as Europe/Berlin") from error


def _script(call: ToolCall) -> Script | None:
    """The code of exactly the definition that the call was cleared for."""
    rows = Script.objects.select_related("tool")
    return rows.filter(tool=call.tool, tool__definition_hash=call.definition_hash).first() if call.tool else None
