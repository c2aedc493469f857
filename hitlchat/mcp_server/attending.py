"""A client that waits for its call: it is told how far that is, and what it no longer waits for comes to nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import anyio

from hitlchat.base.background import background
from hitlchat.base.database import in_db
from hitlchat.gate import stopping, withdraw
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server import holding
from hitlchat.mcp_server.asked import Asked

SECONDS = 5.0
CANCELLED = "its client cancelled it"
FAILED = "an error in hitlchat kept it from being asked about"


@asynccontextmanager
async def attached(asked: Asked, call: ToolCall) -> AsyncIterator[None]:
    """A call that its client cancels is withdrawn, or told to stop if it executes. One that we fail to ask about is
    withdrawn too; one that waits while the server restarts goes on waiting."""
    try:
        async with holding.held(call), asked.progress.following(call.pk):
            yield
    except (Exception, asyncio.CancelledError) as error:
        cancelled = isinstance(error, asyncio.CancelledError)
        if not background.leaving:
            with anyio.move_on_after(SECONDS, shield=True):
                await in_db(_let_go)(asked, call.pk, cancelled=cancelled)
        raise


def _let_go(asked: Asked, call_id: UUID, *, cancelled: bool) -> None:
    actor = asked.access.caller.actor
    withdraw.withdraw_call(call_id, actor=actor, why=CANCELLED if cancelled else FAILED)
    if cancelled and ToolCall.objects.filter(pk=call_id, status=Status.EXECUTING).exists():
        stopping.request(call_id, actor)
