"""Waiting for what becomes of a call, and coming back for it: a client waits so long, and the same call made once more
takes up the one that waits, or its outcome, instead of asking again.
"""

import time
from datetime import datetime, timedelta

import mcp_types as types
from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from hitlchat.base.database import in_db
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.settling import watched
from hitlchat.gate.status import Status
from hitlchat.mcp_server import outcomes, submitting
from hitlchat.mcp_server.models import Submission
from hitlchat.mcp_server.request import Asked

SLICE_SECONDS = 1.0
TELL_SECONDS = 5.0
# Far longer than tools may take.
LONGEST_SECONDS = 900.0
# An outcome that nobody came back for is an answer to the same call for so long, and then history.
STANDS = timedelta(hours=1)


def pick_up(asked: Asked) -> ToolCall | None:
    """The call like this one that its client was told to come back for; it is this request's from now on."""
    recent = Q(call__settled_at=None) | Q(call__settled_at__gt=Now() - STANDS)
    rows = Submission.objects.filter(recent, token_id=asked.access.token_id, request=asked.digest)
    parked = rows.filter(parked_at__isnull=False).order_by("parked_at").values_list("pk", "parked_at")
    for call_id, since in parked[:10]:
        if asked.digest and Submission.objects.filter(pk=call_id, parked_at=since).update(parked_at=None):
            return ToolCall.objects.get(pk=call_id)
    return None


async def attend(asked: Asked, call: ToolCall, *, wait: bool = True) -> types.CallToolResult:
    """Return what became of the call; or, if it takes long, that its client is to come back."""
    if call.status == Status.WAITING and not asked.is_modern:
        await in_db(submitting.outlives)(call.pk)
    call = await _decided(asked, call, settings.MCP_INBOX_SECONDS if wait else 0)
    if call.status != Status.WAITING and not call.settled:
        call = await watched(call.pk, LONGEST_SECONDS, "tool")
    if call.settled:
        return await outcomes.of(call)
    parked = await in_db(_park)(call)
    if (told := await in_db(outcomes.pending)(call.pk, asked.address_of)) is not None:
        return told
    # Its outcome is told now, and so is not there to be come back for.
    await in_db(_unpark)(call, parked)
    return await outcomes.of(await in_db(ToolCall.objects.get)(pk=call.pk))


async def until_asked_again(call: ToolCall) -> ToolCall:
    """The call as it is once nothing more happens to it by itself, or once it waits for another answer."""
    end = time.monotonic() + LONGEST_SECONDS
    while True:
        now = await watched(call.pk, SLICE_SECONDS)
        asked_again = now.status == Status.WAITING and now.round > call.round
        if now.settled or asked_again or time.monotonic() > end:
            return now


async def _decided(asked: Asked, call: ToolCall, seconds: float) -> ToolCall:
    begun, told, said = time.monotonic(), 0.0, ""
    while call.status == Status.WAITING and (left := begun + seconds - time.monotonic()) > 0:
        if time.monotonic() - told > TELL_SECONDS:
            told, said = time.monotonic(), said or await in_db(_waiting)(asked, call)
            await asked.progress.waits(said)
        call = await watched(call.pk, min(left, SLICE_SECONDS))
    return call


def _waiting(asked: Asked, call: ToolCall) -> str:
    approval_id = Approval.objects.values_list("pk", flat=True).get(call_id=call.pk)
    return f"Waits for a person's approval, at {asked.address_of(approval_id)}"


def _park(call: ToolCall) -> datetime:
    now = timezone.now()
    Submission.objects.filter(pk=call.pk).update(parked_at=now)
    return now


def _unpark(call: ToolCall, since: datetime) -> None:
    Submission.objects.filter(pk=call.pk, parked_at=since).update(parked_at=None)
