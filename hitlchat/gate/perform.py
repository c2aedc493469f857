"""From a yes to a result: claim the call, check that it is still what was shown, execute it at most once."""

import asyncio
import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Q
from django.utils import timezone

from hitlchat.gate import canonical, disclosure, policy
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.background import ME, background
from hitlchat.gate.crossing import in_db
from hitlchat.gate.models import CallerKind, HitlMode, Tool, ToolCall
from hitlchat.gate.sources import ToolResult, source
from hitlchat.gate.status import Status
from hitlchat.gate.storable import storable
from hitlchat.gate.transition import StaleCall, call_moved, move

logger = logging.getLogger(__name__)

READY = (Status.ALLOWED, Status.APPROVED)
LEAVES_RESULT = Q(status__in=[Status.EXECUTING, Status.UNKNOWN])

# Of this process: what `claim` gave out, each good for one `execute`, and what is being executed.
_claimed: set[UUID] = set()
_executing: set[UUID] = set()


class NotClaimed(Exception):
    """Nobody claimed this call for execution, or it was executed already: nothing was run."""


def begin(call_id: UUID) -> None:
    """Claim a ready call for this process and start executing it; nothing without a server loop, or if it is taken."""
    if background.running and (call := claim(call_id)) is not None:
        background.spawn(execute, call)


def claim(call_id: UUID) -> ToolCall | None:
    """Move a ready call to executing, for this process alone; None when it is not ready or no longer what was shown.

    The move comes before the tool is entered: a crash after it leaves the outcome unknown, never a second run.
    """
    call = ToolCall.objects.select_related("tool", "approval").filter(pk=call_id, status__in=READY).first()
    if call is None:
        return None
    try:
        if void := _void(call):
            move(call, Status.WITHDRAWN, actor=SYSTEM, data={"reason": void}, reason=f"Not run: {void}.")
            return None
        now = timezone.now()
        move(call, Status.EXECUTING, actor=SYSTEM, owner=ME, started_at=now, lease_until=now + lease())
    except StaleCall:
        return None
    _claimed.add(call.pk)
    return call


async def execute(call: ToolCall) -> None:
    """Execute a call that `claim` returned, once, and record what happened. NotClaimed for any other call."""
    if call.pk not in _claimed:
        raise NotClaimed(f"call {call.pk} was not claimed for execution")
    _claimed.remove(call.pk)
    _executing.add(call.pk)
    try:
        await in_db(_record)(call, await _enter(call))
    finally:
        _executing.discard(call.pk)


async def _enter(call: ToolCall) -> ToolResult:
    if call.lease_until is None or call.lease_until <= timezone.now():
        # Others may count it as lost by now, and act on that.
        return ToolResult.failure("late", "It was not run: it could not be started in time.")
    try:
        return await source(call.source).execute(call)
    except asyncio.CancelledError:
        await asyncio.shield(in_db(_lost)(call.pk, "the server stopped while it was executing"))
        raise
    except Exception:
        logger.exception("Tool %s failed outside the tool itself, call %s", call.tool_name, call.pk)
        return ToolResult.failure("internal", "An error in hitlchat, not in the tool, ended the call.")


def settle(call_id: UUID, result: ToolResult) -> None:
    """Record what came back, once; also when the call had been given up for lost meanwhile."""
    while call := ToolCall.objects.filter(LEAVES_RESULT, pk=call_id, owner=ME).first():
        # Not recorded: given up for lost, or marked by a person, since it was read.
        if _recorded(call, result):
            return
    logger.warning("Call %s has no one waiting for its result", call_id)


def _record(call: ToolCall, result: ToolResult) -> None:
    """As the call was when it was claimed, which is how it nearly always still is; else as it is now."""
    if not _recorded(call, result):
        settle(call.pk, result)


def _recorded(call: ToolCall, result: ToolResult) -> bool:
    result = _keepable(result)
    to = Status.SUCCEEDED if result.error is None else Status.FAILED
    columns: dict[str, Any] = {"result": result.value, "error": result.error, "output": storable(result.output)}
    try:
        move(call, to, actor=SYSTEM, only_if=Q(owner=ME), lease_until=None, **columns)
    except StaleCall:
        return False
    return True


def _keepable(result: ToolResult) -> ToolResult:
    try:
        canonical.dumps([result.value, result.error])
    except canonical.NotJson as error:
        told = f"It was run, but what came back can't be kept: {error}"
        return ToolResult.failure("result", told, output=result.output)
    return result


def lose_overdue() -> list[UUID]:
    """Calls whose process fell silent while executing: their outcome is unknown. Never run again by itself."""
    silent = Q(lease_until__lt=timezone.now())
    ids = list(ToolCall.objects.filter(silent, status=Status.EXECUTING).values_list("pk", flat=True)[:100])
    for call_id in ids:
        _lost(call_id, "the process that was executing it stopped", only_if=silent)
    return ids


def beat() -> None:
    """Renew the leases of everything this process executes; not of a call whose result it could not record."""
    rows = ToolCall.objects.filter(pk__in=tuple(_executing), owner=ME, status=Status.EXECUTING)
    rows.update(lease_until=timezone.now() + lease())


def lease() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)


def _lost(call_id: UUID, why: str, only_if: Q | None = None) -> None:
    call = ToolCall.objects.filter(pk=call_id, status=Status.EXECUTING).first()
    if call is None:
        return
    try:
        move(call, Status.UNKNOWN, actor=SYSTEM, only_if=only_if, data={"reason": why}, lease_until=None)
    except StaleCall:
        logger.info("Call %s was settled, or its process spoke up, after all", call_id)


def _void(call: ToolCall) -> str | None:
    """Why this call must not run, although its status says it may; None if nothing has changed."""
    tool = call.tool
    if tool is None:
        return "the tool was deleted"
    if not tool.published and call.caller_kind != CallerKind.STUDIO:
        return "the tool was unpublished"
    if call.status == Status.APPROVED:
        try:
            return disclosure.difference(call.approval, call, tool)
        except (ObjectDoesNotExist, LookupError, TypeError, canonical.NotJson):
            return "the record of what was shown cannot be read"
    if settings.HITL_ENABLED and tool.hitl_mode == HitlMode.REQUIRED:
        return "the tool asks every time now"
    # Also when the rule was changed while the verdict was on its way to the record.
    if call.rule != policy.rule_of(tool):
        return "the rule that allowed it was changed"
    return None if _same_tool(tool, call) else "the tool's definition changed"


def _same_tool(tool: Tool, call: ToolCall) -> bool:
    return (tool.name, tool.source, tool.definition_hash) == (call.tool_name, call.source, call.definition_hash)


def _on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    if status in READY:
        begin(call_id)


call_moved.connect(_on_move, dispatch_uid="perform")
