"""Putting a call to the gate, and holding it while this process keeps its client connected."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import anyio
from django.conf import settings
from django.db import transaction
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from hitlchat.base import database, lease
from hitlchat.base.background import Worker, background
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.gate import withdraw
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, Prepared, admit, prepare
from hitlchat.mcp_server.models import Submission
from hitlchat.mcp_server.question import Way, way
from hitlchat.mcp_server.request import Asked

LOST = "the server that its client was connected to ended before the question was answered"
EXPIRED = "its token expired"
AT_ONCE = 100
SECONDS = 5.0

_held: set[UUID] = set()


def _longest() -> timedelta:
    return 2 * lease.length()


_leases = lease.Leases("held_until", _longest)


def until() -> CombinedExpression:
    """Return how long others believe that a process still has the client, without hearing from it."""
    return Now() + _longest()


@asynccontextmanager
async def held(call: ToolCall) -> AsyncIterator[None]:
    """While its client waits here for a call that is not over. Calls that nobody needs to be asked about are not
    held: they run at once, or not at all.
    """
    if call.settled or call.status == Status.ALLOWED:
        yield
        return
    _held.add(call.pk)
    try:
        await in_db(_note)(call.pk, until())
        yield
    except (Exception, asyncio.CancelledError):
        # Others need not wait for what this process knows: its clients are gone when it ends.
        await _release(call.pk, is_lost=background.leaving)
        raise
    else:
        await _release(call.pk)


async def _release(call_id: UUID, *, is_lost: bool = False) -> None:
    _held.discard(call_id)
    with anyio.move_on_after(SECONDS, shield=True):
        await in_db(_note)(call_id, is_lost=is_lost)


def outlives(call_id: UUID) -> None:
    """Mark that the call waits for others than its client, and goes on when that is gone."""
    Submission.objects.filter(pk=call_id).update(ends=False)


def watch() -> Worker:
    """Say that this process still has its clients, and look for calls whose clients others have lost."""
    every = settings.LEASE_SECONDS / 3
    return Worker("clients", in_db(_look), every, longest=every)


def _note(call_id: UUID, end: CombinedExpression | None = None, *, is_lost: bool = False) -> None:
    held_until = database.now() if is_lost else end
    Submission.objects.filter(pk=call_id).update(held_until=held_until)


def _look() -> None:
    if _held:
        # Not those let go of in this moment.
        Submission.objects.filter(pk__in=tuple(_held), held_until__isnull=False).update(held_until=until())
    rows = Submission.objects.filter(held_until__isnull=False).exclude(pk__in=tuple(_held)).select_related("call")
    gone = [pk for pk, _ in _leases.lapsed(rows, AT_ONCE)]
    for row in rows.filter(pk__in=gone).order_by("held_until"):
        _leave(row)
    _expire()


def _expire() -> None:
    """Expire the call with the token that it came in with, as when that is revoked."""
    rows = Submission.objects.filter(call__status=Status.WAITING, token__expires_at__lte=Now())
    for call_id in rows.values_list("call_id", flat=True)[:AT_ONCE]:
        withdraw.withdraw_call(call_id, actor=SYSTEM, why=EXPIRED)


def _leave(row: Submission) -> None:
    rows = Submission.objects.filter(pk=row.pk, held_until=row.held_until)
    if row.ends:
        withdraw.withdraw_question(row.call_id, row.call.round, actor=SYSTEM, why=LOST)
        rows.update(held_until=None)
    else:
        rows.update(held_until=None, parked_at=database.now())


MOST_WAITING = 50
NOBODY_TO_ASK = (
    "It needs a person's approval, this client cannot ask its user (elicitation), and its token allows no other way."
)
TOO_MANY = f"{MOST_WAITING} calls of this token wait for an answer already; let those be answered first."


async def submit(asked: Asked, tool: Tool) -> ToolCall:
    request = CallRequest(tool.name, asked.arguments, asked.access.caller, among=(tool.name,))
    prepared = await prepare(request, tool)
    waits = prepared.status == Status.WAITING
    askable = await in_db(_askable)(asked, prepared) if waits else prepared
    # Once it may be on record, whoever cancels must know which call that was.
    with anyio.CancelScope(shield=True):
        call = await in_db(_admit)(asked, prepared, askable)
    return call  # noqa: RET504 (to mypy a scope may swallow what it does not)


def storable_name(asked: Asked) -> str:
    return storable(asked.params.name[:65])


def _askable(asked: Asked, prepared: Prepared) -> Prepared:
    """Return it as judged, if there is someone to ask and not too much is asked of them; else refused."""
    assert prepared.tool is not None
    chosen = way(asked, prepared.tool)
    if chosen == Way.DENY:
        return replace(prepared, status=Status.REFUSED, reason=NOBODY_TO_ASK)
    if Submission.objects.filter(token_id=asked.access.token_id, call__status=Status.WAITING).count() >= MOST_WAITING:
        return replace(prepared, status=Status.REFUSED, reason=TOO_MANY)
    if asked.is_modern or chosen != Way.FORM:
        return prepared
    # The question ends with the request that holds it open.
    return replace(prepared, request=replace(prepared.request, patience=settings.MCP_ELICITATION_SECONDS))


def _admit(asked: Asked, prepared: Prepared, askable: Prepared) -> ToolCall:
    with transaction.atomic():
        call = admit(prepared, instead=askable)
        waits = call.status == Status.WAITING
        Submission.objects.create(
            call=call,
            token_id=asked.access.token_id,
            request=asked.digest,
            held_until=until() if waits else None,
            # An older client holds the question open; `outlives` says where that is not so.
            ends=waits and not asked.is_modern,
        )
        # Once this is committed its tool may be entered, and tell how far it is, before its client follows.
        asked.progress.expect(call.pk)
    return call
