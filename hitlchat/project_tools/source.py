"""Functions of the project as the gate executes them, and their rows kept in step with the code."""

import asyncio
import inspect
import logging
from collections.abc import Mapping
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, IntegrityError, transaction
from django.db.models import Model, Q
from django.utils.translation import gettext_noop

from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.gate import perform, stopping, tools
from hitlchat.gate.actor import SYSTEM, Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.schema import BadArguments
from hitlchat.gate.sources import Preview, ToolResult
from hitlchat.project_tools import catalogue, running
from hitlchat.project_tools.catalogue import SOURCE, ProjectTool
from hitlchat.project_tools.running import Job

OTHER_CODE = "This server process has other code for it. Restart the server."
# How long a function that was told to stop may take to do so.
GRACE_SECONDS = 5.0
Work = asyncio.Task[ToolResult]
logger = logging.getLogger(__name__)


def keep_in_step() -> None:
    """Add, change and remove rows until they are as the code has them; nothing is written where they are already.

    Calls stay on record; what waits for an answer about a function that changed or is gone is withdrawn. A name that
    another tool has is not touched: the function is left out, and the log says so.
    """
    declared = catalogue.tools()
    rows = {row.name: row for row in Tool.objects.filter(Q(source=SOURCE) | Q(name__in=declared))}
    for name, made in declared.items():
        _keep(made, rows.get(name))
    for name, row in rows.items():
        if row.source == SOURCE and name not in declared:
            _remove(row)


def after_migrate(*, using: str, **kwargs: Any) -> None:
    """Keep rows in step on `post_migrate`: the table may be gone by now, or be that of another version."""
    try:
        migrated = kwargs.get("apps", apps).get_model("gate", "Tool")
    except LookupError:
        return
    if using == DEFAULT_DB_ALIAS and _columns(migrated) == _columns(Tool):
        keep_in_step()


def _columns(model: type[Model]) -> set[str | None]:
    return {field.column for field in model._meta.local_fields}  # noqa: SLF001 - public, despite its name


def _keep(made: ProjectTool, row: Tool | None) -> None:
    columns = made.columns
    if row is None:
        # Not `create`: another process may be starting too.
        try:
            with transaction.atomic():
                # What the operator's code says holds; only who decides is inherited from an earlier tool of the name.
                tools.add(Tool(**columns), SYSTEM, inherits=False)
        except IntegrityError:
            row = Tool.objects.get(name=made.name)
        else:
            logger.info("Function %s is now the tool %s", made.path, made.name)
            return
    if row.source != SOURCE:
        logger.error("Function %s is not offered: another tool has the name %s (%s)", made.path, made.name, row.origin)
    elif _differs(row, columns):
        _change(row, columns)


def _change(row: Tool, columns: dict[str, Any]) -> None:
    with transaction.atomic():
        before = Tool.objects.select_for_update().filter(pk=row.pk, source=SOURCE).first()
        if before is None or not _differs(before, columns):
            return
        tools.change(row.pk, columns, SYSTEM)
        if before.definition_hash != columns["definition_hash"]:
            stopping.withdraw_tool(row.pk, actor=SYSTEM, why=gettext_noop("the function was changed"))
        if (before.hitl_mode, before.condition) != (columns["hitl_mode"], columns["condition"]):
            stopping.withdraw_allowed(row.pk, actor=SYSTEM, why=gettext_noop("the rule that allowed it was changed"))
    logger.info("The tool %s follows its function, which was changed", row.name)


def _remove(row: Tool) -> None:
    with transaction.atomic():
        stopping.withdraw_tool(
            row.pk, actor=SYSTEM, why=gettext_noop("the function was removed from this server's project")
        )
        tools.remove(Tool.objects.filter(pk=row.pk, source=SOURCE), SYSTEM)
    logger.info("The tool %s is gone with its function", row.name)


def _differs(row: Tool, columns: Mapping[str, Any]) -> bool:
    return any(getattr(row, name) != value for name, value in columns.items())


class ProjectSource:
    def unfit(self, tool: Tool, arguments: dict[str, Any]) -> BadArguments | None:
        made = _of_definition(tool.name, tool.definition_hash)
        try:
            if made is not None:
                made.signature.coerce(arguments)
        except BadArguments as error:
            return error
        return None

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
            message = translatable(
                f"It took longer than {seconds:g} s and was stopped. What it had done by then is not undone."
            )
            return _outcome(work, message)
    # Nothing stops a thread. To say that it failed, while it may be about to succeed, would be untrue.
    await perform.give_up(call.pk, f"it took longer than {seconds:g} s, cannot be stopped, and may still go on")
    await asyncio.wait({work})
    return _outcome(work, "It was stopped, later than asked. What it had done by then stands.")


async def _ends(work: Work, seconds: float) -> bool:
    done, _ = await asyncio.wait({work}, timeout=seconds)
    return bool(done)


def _caller(call: ToolCall) -> Caller:
    kind: Any = call.caller_kind
    return Caller(kind, call.caller_id, call.caller.get_username())


def _outcome(work: Work, message: str) -> ToolResult:
    return ToolResult.failure("timeout", message) if work.cancelled() else work.result()
