"""Functions of the project as the gate executes them, and their rows kept in step with the code.

A function runs from JSON to JSON, in a thread of its own where it blocks.
"""

import asyncio
import inspect
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, IntegrityError, transaction
from django.db.models import Model, Q
from django.utils.translation import gettext_noop
from pydantic_core import PydanticSerializationError, to_jsonable_python

from hitlchat.base import canonical
from hitlchat.base.background import Busy, OwnThreads
from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.gate import perform, stopping, tools
from hitlchat.gate.actor import SYSTEM, Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.schema import BadArguments
from hitlchat.gate.sources import Preview, ToolResult
from hitlchat.project_tools import Function, ToolError, catalogue
from hitlchat.project_tools.catalogue import SOURCE, ProjectTool
from hitlchat.project_tools.signature import Signature

OTHER_CODE = "This server process has different code for this tool. Restart the server."
# How long a function that was told to stop may take to do so.
GRACE_SECONDS = 5.0
MOST_AT_ONCE = 64
LARGEST_RESULT = 2**20
LONGEST_MESSAGE = 2000

Work = asyncio.Task[ToolResult]

logger = logging.getLogger(__name__)

own_threads = OwnThreads("project-tool", MOST_AT_ONCE)


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
            with transaction.atomic():
                why = gettext_noop("the function was removed from this server's project")
                stopping.withdraw_tool(row.pk, actor=SYSTEM, why=why)
                tools.remove(Tool.objects.filter(pk=row.pk, source=SOURCE), SYSTEM)
            logger.info("The tool %s was removed: its function is gone", name)


def after_migrate(*, using: str, **kwargs: Any) -> None:
    """Keep rows in step on `post_migrate`: the table may be gone by now, or be that of another version."""
    try:
        migrated = kwargs.get("apps", apps).get_model("gate", "Tool")
    except LookupError:
        return
    if using == DEFAULT_DB_ALIAS and _columns(migrated) == _columns(Tool):
        keep_in_step()


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
        job = Job(made.function, made.signature, call.arguments, extra, f"{made.path}, call {call.pk}")
        # A task of its own, so that neither a time-out nor the function's own tricks end the one that records.
        work = asyncio.create_task(run_job(job))
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
        seen = await run_job(job)
        return Preview.of(seen.value) if seen.error is None else Preview(error=seen.error["message"])

    async def holds(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> bool | None:
        made = _of_definition(tool.name, tool.definition_hash)
        if made is None or made.judging is None or tool.condition != made.condition:
            # Of the text, the name of a function is no expression that gives an answer.
            return None
        extra = {made.judging.caller: caller} if made.judging.caller else {}
        job = Job(made.judging.function, made.signature, arguments, extra, f"the condition of {made.path}")
        seen = await run_job(job)
        if seen.error is not None or not isinstance(seen.value, bool):
            raise RuntimeError(seen.error["message"] if seen.error else "it gave neither true nor false")
        return seen.value


@dataclass(frozen=True)
class Job:
    """`arguments` are JSON values, made into what `signature` says; `extra` is passed as is; `label` is for the log."""

    function: Function
    signature: Signature
    arguments: Mapping[str, Any]
    extra: Mapping[str, Any]
    label: str

    def call(self) -> Any:
        """The result, or for an async function what to await for it. BadArguments, and whatever the function raises."""
        return self.function(**self.signature.coerce(self.arguments), **self.extra)


async def run_job(job: Job) -> ToolResult:
    """Run the function of `job`: on this loop if it is async, else in a thread. Raises nothing but cancellation."""
    if not inspect.iscoroutinefunction(job.function):
        # `sync_to_async` asks for more than it uses, which is to submit to it.
        threads = cast("ThreadPoolExecutor", own_threads)
        try:
            # Not sensitive to the thread: a function that takes long must not hold up the server's own database work.
            return await sync_to_async(_run_sync, thread_sensitive=False, executor=threads)(job)
        except Busy:
            why = "too many functions of this project are already running"
            return ToolResult.failure("busy", f"It was not run: {why}. Try again later.")
    try:
        return _written(await job.call())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - logged there
        return _failed(error, job)


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
    logger.info("The tool %s was updated: its function changed", row.name)


def _differs(row: Tool, columns: Mapping[str, Any]) -> bool:
    return any(getattr(row, name) != value for name, value in columns.items())


def _of_definition(name: str, definition_hash: str) -> ProjectTool | None:
    """Return the function of this definition; None if this process has other code, which must not run in its place."""
    made = catalogue.tools().get(name)
    return made if made is not None and made.definition_hash == definition_hash else None


async def _within(work: Work, made: ProjectTool, call: ToolCall) -> ToolResult:
    seconds = made.chosen.timeout_seconds
    if await _ends(work, seconds):
        return _outcome(work, "It was not finished: the function cancelled itself.")
    if inspect.iscoroutinefunction(made.function):
        work.cancel()
        if await _ends(work, GRACE_SECONDS):
            message = translatable(
                f"It took longer than {seconds:g} s and was stopped. Anything it did before that is not undone."
            )
            return _outcome(work, message)
    # Nothing stops a thread. To say that it failed, while it may be about to succeed, would be untrue.
    await perform.give_up(call.pk, f"it took longer than {seconds:g} s, cannot be stopped, and may still be running")
    await asyncio.wait({work})
    return _outcome(work, "It was stopped, but not at once. Anything it did before that is not undone.")


async def _ends(work: Work, seconds: float) -> bool:
    done, _ = await asyncio.wait({work}, timeout=seconds)
    return bool(done)


def _caller(call: ToolCall) -> Caller:
    return Caller(cast("Any", call.caller_kind), call.caller_id, call.caller.get_username())


def _outcome(work: Work, message: str) -> ToolResult:
    return ToolResult.failure("timeout", message) if work.cancelled() else work.result()


def _run_sync(job: Job) -> ToolResult:
    try:
        return _written(job.call())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - logged there
        return _failed(error, job)


def _written(value: Any) -> ToolResult:
    try:
        written = to_jsonable_python(value)
        size = len(canonical.dumps(written))
    except (PydanticSerializationError, canonical.NotJson) as error:
        message = f"It was run, but returned a {type(value).__name__}, which JSON cannot carry: {error}"
        return ToolResult.failure("result", message[:LONGEST_MESSAGE])
    if size > LARGEST_RESULT:
        message = f"It was run, but its result has {size:,} bytes; at most {LARGEST_RESULT:,} can be stored."
        return ToolResult.failure("result", message)
    return ToolResult(value=written)


def _failed(error: BaseException, job: Job) -> ToolResult:
    if isinstance(error, BadArguments):
        message = f"It was not run: the arguments do not fit. {error}"
        return ToolResult.failure("arguments", message[:LONGEST_MESSAGE])
    # Subclasses of ValueError are not meant: those of parsers and validators quote what they could not read.
    if isinstance(error, ToolError) or type(error) is ValueError:
        return ToolResult.failure("error", (str(error) or "It failed, and gave no reason.")[:LONGEST_MESSAGE])
    logger.error("A function of this project failed: %s", job.label, exc_info=error)
    return ToolResult.failure("internal", f"It failed inside the function. See the server's log ({job.label}).")
