"""Performing: claim the call, check that it is still what was shown, execute it at most once."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from hitlchat.accounts.roles import may_author
from hitlchat.base import canonical, database, lease
from hitlchat.base.background import Waker, background, me
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import Where, compiled, condition
from hitlchat.gate import (
    contents,
    deciders,
    disclosure,
    oversight,
    policy,
    provenance,
    stopping,
    submit,
    tools,
    transition,
)
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.grants import scope
from hitlchat.gate.models import CallerKind, HitlMode, IsUnfinished, Tool, ToolCall
from hitlchat.gate.policies import Ask, Refuse
from hitlchat.gate.sources import (
    ANYWHERE,
    CannotBegin,
    DelegatingSource,
    OutcomeUnknown,
    Place,
    Source,
    ToolResult,
    source,
    why_unpublished,
)
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import READY, NoPlace, NotYet, Work, executing, works
from hitlchat.gate.submit import Look, LookFirst
from hitlchat.gate.transition import StaleCall, move, withdraw

logger = logging.getLogger(__name__)

# Of a call that is work of its own: no process holds it.
NOBODY: Final = ""
NOT_BEGUN: Final = gettext_noop("an error in hitlchat kept it from beginning")
NOT_ON_RECORD: Final = gettext_noop("the record does not say that it was approved or allowed")
NO_AUTHOR: Final = gettext_noop("the person it was called for may not test tools any more")

# Gives a call a place to run in. NoPlace.
Admit = Callable[[ToolCall], Place]

_leases = lease.Leases()


class AskFirst(Exception):
    """The call was to run unasked, but its conversation now asks about it: it must not start."""

    def __init__(self, call: ToolCall, ask: Ask) -> None:
        super().__init__(f"call {call.pk} was to run unasked: {ask.reason}")
        self.call, self.ask = call, ask


class NotClaimed(Exception):
    """Nobody claimed this call for execution, or it was executed already: nothing was run."""


def begin(call_id: UUID) -> None:
    """Claim a ready call for this process and start executing it, now or when it is its turn; nothing without a server
    loop, or if it is taken.
    """
    if not background.running:
        return
    try:
        call = claim(call_id, admit=_place)
    except AskFirst as first:
        background.spawn(_ask, first)
    except NotYet as later:
        background.spawn(_execute_in_turn, later.call)
    else:
        if call is not None:
            background.spawn(execute, call)


@contextmanager
def claiming() -> Iterator[Callable[[UUID], None]]:
    """Claim a call within the transaction that approves it: both wait for the disk once, and both come to nothing if
    that fails.

    A call that cannot start at once stays approved; `on_move` begins it after the commit.
    """
    claimed: list[tuple[UUID, Place]] = []

    def claim_now(call_id: UUID) -> None:
        call = _ready(call_id).one() if background.running else None
        # To judge it anew may take a run in the sandbox, which nobody else's transaction should wait for.
        if call is None or call.tool is None or call.rule != policy.rule_of(call.tool) or submit.must_look(call):
            return
        if why_stale(call) or isinstance(_source(call), DelegatingSource):
            return
        with suppress(NoPlace, StaleCall):
            place = _place(call)
            _claimed(call, place)
            claimed.append((call_id, place))
            # First: once it is committed, no error gives back the place of a call that runs.
            transaction.on_commit(claimed.clear)
            transaction.on_commit(partial(background.spawn, execute, call))

    try:
        yield claim_now
    except BaseException:
        for call_id, place in claimed:
            del works[call_id]
            place.leave()
        raise


async def start(call_id: UUID, seconds: float | None = None) -> ToolCall | None:
    """`claim`, once there is a place for the call, and once the preview that it was approved with, if there is one, has
    been made again. None also when that takes longer than `seconds`, and when a person is asked after all.
    """
    try:
        return await in_db(claim)(call_id, admit=_place)
    except AskFirst as first:
        await _ask(first)
        return None
    except NotYet as later:
        return await _claim_in_turn(later.call, seconds)


def claim(call_id: UUID, seen: Look | None = None, *, admit: Admit = lambda _: ANYWHERE) -> ToolCall | None:
    """Move a ready call to executing, for this process alone; None when it is not ready or no longer what was shown.

    The move is on the disk before the tool is entered: a crash or power cut after it leaves the outcome unknown, never
    a second run.
    AskFirst: it was to run unasked, and its conversation asks about it by now.
    LookFirst: it was approved with a preview, and `seen` does not say how that looks now. If it looks different, the
    call is asked about again. NoPlace, from `admit`: it stays as it is until there is one.
    """
    call = _ready(call_id).one()
    if call is None:
        return None
    try:
        if why := why_stale(call):
            withdraw(call, why)
            return None
        if ask := oversight.asks_about_call(call):
            raise AskFirst(call, ask)
        if submit.must_look(call) and not submit.stands(call, seen):
            return None
        agents: object = _source(call)
        if isinstance(agents, DelegatingSource):
            _delegated(call, agents)
            return None
        return _claimed(call, admit(call))
    except StaleCall:
        return None


def why_stale(call: ToolCall) -> str | None:
    """Return why a ready call must not run after all, in words; None if all is as it was shown or allowed.

    `call` is read with its tool, approval and caller.
    """
    return _changed(call) or (None if transition.is_on_record(call) else NOT_ON_RECORD)


async def execute(call: ToolCall) -> None:
    """Execute a call that `claim` returned, once, and record what happened. NotClaimed for any other call."""
    work = works.get(call.pk)
    if work is None or work.place is None or work.stop is not None:
        raise NotClaimed(f"call {call.pk} was not claimed for execution")
    work.stop = Waker()
    try:
        await in_db(_record)(call, await _enter(call, work, work.place))
    except OutcomeUnknown as unknown:
        await in_db(_lost)(call.pk, str(unknown))
    finally:
        del works[call.pk]


def settle(call_id: UUID, result: ToolResult) -> None:
    """Record what came back, once; also when the call had been given up for lost meanwhile."""
    rows = ToolCall.objects.filter(pk=call_id, owner=me(), status__in=[Status.EXECUTING, Status.UNKNOWN])
    while call := rows.first():
        # Not recorded: given up for lost, or marked by a person, since it was read.
        if _recorded(call, result):
            return
    logger.warning("Call %s has no one waiting for its result", call_id)


def conclude(call_id: UUID, result: ToolResult) -> bool:
    """Record the end of a call that is work of its own, within the transaction that ends that; False: it was over."""
    call = ToolCall.objects.filter(pk=call_id, status=Status.EXECUTING, owner=NOBODY).first()
    return call is not None and _recorded(call, result, NOBODY)


def lose_overdue() -> list[UUID]:
    """Calls whose process fell silent while executing: their outcome is unknown. Never run again by itself."""
    # Of what this process executes it knows better, whatever happened to the clock.
    rows = ToolCall.objects.filter(IsUnfinished(), status=Status.EXECUTING).exclude(pk__in=executing())
    for call_id, silent in (found := _leases.lapsed(rows, 100)):
        _lost(call_id, "the process that was executing it stopped", only_if=Where(rest=silent))
    return [call_id for call_id, _ in found]


def beat() -> None:
    """Renew the leases of everything this process executes; not of a call whose result it could not record."""
    rows = ToolCall.objects.filter(pk__in=executing(), owner=me(), status=Status.EXECUTING)
    rows.update(lease_until=lease.renewed())


async def give_up(call_id: UUID, why: str) -> None:
    """Give up, for a source whose work goes on beyond its control: the outcome is unknown until it comes back."""
    await in_db(_lost)(call_id, why)


def on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    # One that was claimed with its approval is at work already.
    if status in READY and call_id not in works:
        begin(call_id)


def _changed(call: ToolCall) -> str | None:
    tool = call.tool
    if lost := _person_lost(call) or scope.why_not_run(call) or tools.why_lost(call):
        return lost
    if tool is None:
        return "the tool was deleted"
    if not tool.published and call.caller_kind != CallerKind.STUDIO:
        return why_unpublished(tool) or "the tool was unpublished"
    if call.status == Status.APPROVED:
        try:
            return disclosure.difference(call.approval, call, tool) or _not_decided(call) or _refused_by_now(call, tool)
        except (ObjectDoesNotExist, LookupError, TypeError, canonical.NotJson):
            return "the record of what was shown cannot be read"
    if settings.HITL_ENABLED and tool.hitl_mode == HitlMode.REQUIRED:
        return "the tool asks every time now"
    # Also when the rule was changed while the verdict was on its way to the record.
    if call.rule != policy.rule_of(tool):
        return "the rule that allowed it was changed"
    same = (tool.name, tool.source, tool.definition_hash) == (call.tool_name, call.source, call.definition_hash)
    return None if same else "the tool's definition changed"


def _person_lost(call: ToolCall) -> str | None:
    """Return what the person it was called for may not do any more."""
    if not call.caller.is_active:
        return "the account it was called for was deactivated"
    if call.caller_kind == CallerKind.STUDIO and not may_author(call.caller):
        return NO_AUTHOR
    return None


def _not_decided(call: ToolCall) -> str | None:
    """Return why the yes does not count any more: a change of people leaves it valid, a change of rules does not."""
    if not deciders.quorum_is_reached(call.approval, call):
        return "fewer people approved it than have to"
    return oversight.CHANGED if oversight.has_changed(call) else None


def _refused_by_now(call: ToolCall, tool: Tool) -> str | None:
    """Return why the changed rules refuse the call; a yes stays valid under changed rules that do not."""
    if call.rule == policy.rule_of(tool):
        return None
    caller = disclosure.caller_of(call.approval.disclosure)
    outside = provenance.is_from_outside(call.approval.disclosure.get("provenance"))
    judge = async_to_sync(policy.judge)
    verdict = judge(tool, call.arguments, caller, call.conversation_id, args_from_outside=outside).verdict
    if not isinstance(verdict, Refuse):
        return None
    return translatable(f"the rules were changed, and refuse it now: {verdict.reason.rstrip('.')}")


async def _ask(first: AskFirst) -> None:
    shown = await submit.look_first(first.call)
    with suppress(StaleCall):
        await in_db(submit.ask_after_all)(first.call, first.ask, shown)


async def _execute_in_turn(call: ToolCall) -> None:
    if (claimed := await _claim_in_turn(call, None)) is not None:
        await execute(claimed)


async def _claim_in_turn(call: ToolCall, seconds: float | None) -> ToolCall | None:
    if call.pk in works:
        return None
    works[call.pk] = waiting = Work()
    try:
        if (place := await stopping.turn(_source(call), call, seconds)) is None:
            return None
        return await _look_and_claim(call, place)
    finally:
        if works.get(call.pk) is waiting:
            del works[call.pk]


async def _look_and_claim(call: ToolCall, place: Place) -> ToolCall | None:
    claimed = None
    try:
        with place.used():
            seen = await submit.look_again(call) if submit.must_look(call) else None
        claimed = await in_db(claim)(call.pk, seen, admit=lambda _: place)
    except AskFirst as first:
        await _ask(first)
    except LookFirst:
        logger.info("Call %s was asked about and approved again meanwhile: the sweeper starts it", call.pk)
    finally:
        if claimed is None:
            place.leave()
    return claimed


def _place(call: ToolCall) -> Place:
    return stopping.place_now(_source(call), call)


def _source(call: ToolCall) -> Source | None:
    """Return the source; None if it can't be had: the call fails when it is entered."""
    try:
        return source(call.source)
    except Exception:
        logger.exception("The source of tool %s is missing, call %s", call.tool_name, call.pk)
        return None


def _delegated(call: ToolCall, agents: DelegatingSource) -> None:
    """Start the call and begin its work in one transaction: there is never one without the other, nor any of it twice.

    No process holds the call from then on. StaleCall: someone else moved it first.
    """
    mine: dict[str, Any] = {"owner": NOBODY, "started_at": database.now(), "lease_until": None}
    try:
        with database.durable():
            move(call, Status.EXECUTING, actor=SYSTEM, only_if=_may_start(call), **mine)
            agents.delegate(call)
    except CannotBegin as error:
        stopping.withdraw_call(call.pk, actor=SYSTEM, why=str(error))
    except (StaleCall, DatabaseError):
        raise
    except Exception:
        logger.exception("Call %s of %s could not be begun", call.pk, call.tool_name)
        stopping.withdraw_call(call.pk, actor=SYSTEM, why=NOT_BEGUN)


@compiled
def _held(call_id: UUID, by: str) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(pk=call_id, owner=by, status=Status.EXECUTING, lease_until__gt=Now())


@compiled
def _ready(call_id: UUID) -> QuerySet[ToolCall]:
    return ToolCall.objects.select_related("tool", "approval", "caller").filter(pk=call_id, status__in=READY)


@condition
def _is_of(owner: str) -> Q:
    return Q(owner=owner)


def _may_start(call: ToolCall) -> Where:
    return scope.still_stands(call) & oversight.lets_start(call)


def _claimed(call: ToolCall, place: Place) -> ToolCall:
    now = database.now()
    mine: dict[str, Any] = {"owner": me(), "started_at": now, "lease_until": now + lease.length()}
    try:
        move(call, Status.EXECUTING, actor=SYSTEM, only_if=_may_start(call), **mine)
    except BaseException:
        place.leave()
        raise
    works[call.pk] = Work(place, lease.uptime())
    return call


async def _enter(call: ToolCall, work: Work, place: Place) -> ToolResult:
    try:
        if not (lease.is_young(work.since) or await in_db(_held(call.pk, me()).exists)()):
            # Others may count it as lost by now, and act on that.
            return ToolResult.failure("late", "It was not run: it could not be started in time.")
        with place.used():
            return await source(call.source).execute(call)
    except asyncio.CancelledError:
        await asyncio.shield(in_db(_lost)(call.pk, "the server stopped while it was executing"))
        raise
    except OutcomeUnknown:
        raise
    except Exception:
        logger.exception("Tool %s failed outside the tool itself, call %s", call.tool_name, call.pk)
        return ToolResult.failure("internal", "An error in hitlchat, not in the tool, ended the call.")
    finally:
        work.has_returned = True
        place.leave()


def _record(call: ToolCall, result: ToolResult) -> None:
    """Record the call as it was when claimed, which it nearly always still is; else as it is now."""
    if not _recorded(call, result):
        settle(call.pk, result)


def _recorded(call: ToolCall, result: ToolResult, owner: str | None = None) -> bool:
    try:
        canonical.dumps([result.value, result.error])
    except canonical.NotJson as error:
        message = f"It was run, but its result cannot be stored: {error}"
        result = ToolResult.failure("result", message, output=result.output)
    to = Status.SUCCEEDED if result.error is None else Status.FAILED
    columns: dict[str, Any] = {"result": result.value, "error": result.error, "output": storable(result.output)}
    try:
        with contents.with_attachments(call, result.attachments):
            move(call, to, actor=SYSTEM, only_if=_is_of(me() if owner is None else owner), lease_until=None, **columns)
    except StaleCall:
        return False
    return True


def _lost(call_id: UUID, why: str, only_if: Where | None = None) -> None:
    call = ToolCall.objects.filter(pk=call_id, status=Status.EXECUTING).first()
    if call is None:
        return
    try:
        move(call, Status.UNKNOWN, actor=SYSTEM, only_if=only_if, data={"reason": why}, lease_until=None)
    except StaleCall:
        logger.info("Call %s was settled, or its process spoke up, after all", call_id)
