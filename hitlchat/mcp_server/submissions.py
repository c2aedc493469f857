"""Submissions: calls that came in over MCP, leased while their client is connected, parked once it is to come back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

import anyio
from django.conf import settings
from django.db.models import Q
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from hitlchat.base import database, lease
from hitlchat.base.background import Worker, background
from hitlchat.base.database import in_db
from hitlchat.gate import stopping
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server.models import Submission
from hitlchat.mcp_server.request import ToolRequest

LOST = "the server that its client was connected to ended before the question was answered"
EXPIRED = gettext_noop("its token expired")
AT_ONCE = 100
SECONDS = 5.0
# An outcome that nobody came back for is an answer to the same call for so long, and then history.
STANDS = timedelta(hours=1)

_leased: set[UUID] = set()


def _longest() -> timedelta:
    return 2 * lease.length()


_leases = lease.Leases("held_until", _longest)


def until() -> CombinedExpression:
    """Return until when others believe that this process still has the client."""
    return Now() + _longest()


@asynccontextmanager
async def leased(call: ToolCall) -> AsyncIterator[None]:
    """Lease a call while its client waits for it here.

    Calls that nobody needs to be asked about are not leased: they run at once, or not at all.
    """
    if call.settled or call.status == Status.ALLOWED:
        yield
        return
    _leased.add(call.pk)
    try:
        await in_db(Submission.objects.filter(pk=call.pk).update)(held_until=until())
        yield
    except (Exception, asyncio.CancelledError):
        # Others need not wait for what this process knows: its clients are gone when it ends.
        await _release(call.pk, is_lost=background.leaving)
        raise
    else:
        await _release(call.pk)


async def _release(call_id: UUID, *, is_lost: bool = False) -> None:
    _leased.discard(call_id)
    with anyio.move_on_after(SECONDS, shield=True):
        await in_db(Submission.objects.filter(pk=call_id).update)(held_until=database.now() if is_lost else None)


def lease_worker() -> Worker:
    """Return the worker that renews the leases of this process, and takes over those that lapsed."""
    every = settings.LEASE_SECONDS / 3
    return Worker("clients", in_db(_renew), every, longest=every)


def _renew() -> None:
    if _leased:
        # Not those let go of in this moment.
        Submission.objects.filter(pk__in=tuple(_leased), held_until__isnull=False).update(held_until=until())
    rows = Submission.objects.filter(held_until__isnull=False).exclude(pk__in=tuple(_leased)).select_related("call")
    gone = [pk for pk, _ in _leases.lapsed(rows, AT_ONCE)]
    for row in rows.filter(pk__in=gone).order_by("held_until"):
        lost = Submission.objects.filter(pk=row.pk, held_until=row.held_until)
        if row.ends:
            stopping.withdraw_question(row.call_id, row.call.round, actor=SYSTEM, why=LOST)
            lost.update(held_until=None)
        else:
            lost.update(held_until=None, parked_at=database.now())
    # A call ends with the token that it came in with, as when that is revoked.
    expired = Submission.objects.filter(call__status=Status.WAITING, token__expires_at__lte=Now())
    for call_id in expired.values_list("call_id", flat=True)[:AT_ONCE]:
        stopping.withdraw_call(call_id, actor=SYSTEM, why=EXPIRED)


def pick_up(incoming: ToolRequest) -> ToolCall | None:
    """Take up the parked call like this one, if there is one: it is this request's from now on."""
    recent = Q(call__settled_at=None) | Q(call__settled_at__gt=Now() - STANDS)
    rows = Submission.objects.filter(recent, token_id=incoming.access.token_id, request=incoming.digest)
    parked = rows.filter(parked_at__isnull=False).order_by("parked_at").values_list("pk", "parked_at")
    for call_id, since in parked[:10]:
        if incoming.digest and Submission.objects.filter(pk=call_id, parked_at=since).update(parked_at=None):
            return ToolCall.objects.get(pk=call_id)
    return None
