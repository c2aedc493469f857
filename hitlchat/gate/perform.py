"""From a yes to a result: claim the call, check that it is still what was shown, execute it at most once."""

import asyncio
import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from hitlchat.gate import again, canonical, stopping, underway, void
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.again import Look, LookFirst
from hitlchat.gate.background import ME, background
from hitlchat.gate.crossing import in_db
from hitlchat.gate.grants import standing
from hitlchat.gate.models import ToolCall
from hitlchat.gate.rows import only
from hitlchat.gate.sources import OutcomeUnknown, ToolResult, source
from hitlchat.gate.status import Status
from hitlchat.gate.storable import storable
from hitlchat.gate.transition import StaleCall, call_moved, move

logger = logging.getLogger(__name__)

READY = (Status.ALLOWED, Status.APPROVED)
LEAVES_RESULT = Q(status__in=[Status.EXECUTING, Status.UNKNOWN])

# Of this process: what is looked at once more, and what `claim` gave out, each good for one `execute`.
_looking: set[UUID] = set()
_claimed: set[UUID] = set()


class NotClaimed(Exception):
    """Nobody claimed this call for execution, or it was executed already: nothing was run."""


def begin(call_id: UUID) -> None:
    """Claim a ready call for this process and start executing it; nothing without a server loop, or if it is taken."""
    if not background.running:
        return
    try:
        call = claim(call_id)
    except LookFirst as first:
        background.spawn(_look_and_execute, first.call)
        return
    if call is not None:
        background.spawn(execute, call)


async def start(call_id: UUID) -> ToolCall | None:
    """`claim`, once the preview that the call was approved with, if there is one, has been made again."""
    try:
        return await in_db(claim)(call_id)
    except LookFirst as first:
        return await _look_and_claim(first.call)


async def _look_and_execute(call: ToolCall) -> None:
    if (claimed := await _look_and_claim(call)) is not None:
        await execute(claimed)


async def _look_and_claim(call: ToolCall) -> ToolCall | None:
    if call.pk in _looking:
        return None
    _looking.add(call.pk)
    try:
        return await in_db(claim)(call.pk, await again.look(call))
    except LookFirst:
        logger.info("Call %s was asked about and approved again meanwhile: the sweeper starts it", call.pk)
        return None
    finally:
        _looking.discard(call.pk)


def claim(call_id: UUID, seen: Look | None = None) -> ToolCall | None:
    """Move a ready call to executing, for this process alone; None when it is not ready or no longer what was shown.

    The move comes before the tool is entered: a crash after it leaves the outcome unknown, never a second run.
    LookFirst: it was approved with a preview, and `seen` does not say how that looks now. If it looks different, the
    call is asked about again.
    """
    rows = ToolCall.objects.select_related("tool", "approval", "caller")
    call = only(rows.filter(pk=call_id, status__in=READY))
    if call is None:
        return None
    try:
        if why := void.reason(call):
            move(call, Status.WITHDRAWN, actor=SYSTEM, data={"reason": why}, reason=f"Not run: {why}.")
            return None
        if again.is_due(call) and not _stands(call, seen):
            return None
        now = timezone.now()
        mine: dict[str, Any] = {"owner": ME, "started_at": now, "lease_until": now + lease()}
        move(call, Status.EXECUTING, actor=SYSTEM, only_if=standing.still_stands(call), **mine)
    except StaleCall:
        return None
    _claimed.add(call.pk)
    underway.begins(call.pk)
    return call


def _stands(call: ToolCall, seen: Look | None) -> bool:
    if seen is None:
        raise LookFirst(call)
    if again.is_as_shown(call, seen):
        return True
    again.ask(call, seen)
    return False


async def execute(call: ToolCall) -> None:
    """Execute a call that `claim` returned, once, and record what happened. NotClaimed for any other call."""
    if call.pk not in _claimed:
        raise NotClaimed(f"call {call.pk} was not claimed for execution")
    _claimed.remove(call.pk)
    with stopping.hearing(call.pk):
        try:
            with underway.ends(call.pk):
                result = await _enter(call)
            await in_db(_record)(call, result)
        except OutcomeUnknown as unknown:
            await in_db(_lost)(call.pk, str(unknown))


async def _enter(call: ToolCall) -> ToolResult:
    if call.lease_until is None or call.lease_until <= timezone.now():
        # Others may count it as lost by now, and act on that.
        return ToolResult.failure("late", "It was not run: it could not be started in time.")
    try:
        return await source(call.source).execute(call)
    except asyncio.CancelledError:
        await asyncio.shield(in_db(_lost)(call.pk, "the server stopped while it was executing"))
        raise
    except OutcomeUnknown:
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
    rows = ToolCall.objects.filter(pk__in=stopping.executing(), owner=ME, status=Status.EXECUTING)
    rows.update(lease_until=timezone.now() + lease())


def lease() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)


async def give_up(call_id: UUID, why: str) -> None:
    """For a source: what it executes goes on beyond its control, so the outcome is unknown until it comes back."""
    await in_db(_lost)(call_id, why)


def _lost(call_id: UUID, why: str, only_if: Q | None = None) -> None:
    call = ToolCall.objects.filter(pk=call_id, status=Status.EXECUTING).first()
    if call is None:
        return
    try:
        move(call, Status.UNKNOWN, actor=SYSTEM, only_if=only_if, data={"reason": why}, lease_until=None)
    except StaleCall:
        logger.info("Call %s was settled, or its process spoke up, after all", call_id)


def _on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    if status in READY:
        begin(call_id)


call_moved.connect(_on_move, dispatch_uid="perform")
