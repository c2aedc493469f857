"""Upstream tools, as the gate executes them: forwarded once a yes is there, and not a moment before."""

import asyncio
from datetime import timedelta

from django.utils import timezone

from hitlchat.base.database import in_db
from hitlchat.gate import stopping
from hitlchat.gate.models import ToolCall
from hitlchat.gate.sources import OutcomeUnknown, ToolResult
from hitlchat.upstreams import keeping, results, servers
from hitlchat.upstreams.asking.waiting import Asker
from hitlchat.upstreams.targets import NoTarget, Target, target_of
from hitlchat.upstreams.waking import progressed
from hitlchat.upstreams.wire import NeverRan, OnProgress, Outcome, Step, Unknown

PROGRESS_PAUSE_SECONDS = 0.2

USED_EVERY = timedelta(hours=1)


class UpstreamSource:
    can_stop = True
    gives_blocks = True

    async def execute(self, call: ToolCall) -> ToolResult:
        try:
            target = await in_db(target_of)(call)
        except NoTarget as error:
            return ToolResult.failure("unavailable", f"It was not run: {error}")
        await _note_use(target)
        outcome = await _forwarded(call, target)
        if stopping.wish(call).is_set() and isinstance(outcome, Unknown | NeverRan):
            return await in_db(_stopped)(call, outcome, target.server.name)
        return results.result_of(outcome, target.server.name)


async def _forwarded(call: ToolCall, target: Target) -> Outcome:
    asker = Asker(call, target.server.name)
    how = {"on_progress": _telling(call), "on_question": asker.ask, "on_declined": asker.declined}
    try:
        async with keeping.upkeep() as upkeep:
            return await upkeep.call(target, cancel=stopping.wish(call), **how)
    finally:
        await asker.close()


def _stopped(call: ToolCall, outcome: Unknown | NeverRan, server: str) -> ToolResult:
    """OutcomeUnknown: to be told to stop is not to have done nothing."""
    who = stopping.requested_by(call)
    if isinstance(outcome, Unknown):
        raise OutcomeUnknown(f"it was stopped by {who}: the server {server} was told to stop, and may have run it")
    return ToolResult.failure("unsent", f"It was not run: it was stopped by {who} before it was sent.")


async def _note_use(target: Target) -> None:
    used = target.server.used_at
    if used is None or timezone.now() - used > USED_EVERY:
        await in_db(servers.used)(target.server.pk)


def _telling(call: ToolCall) -> OnProgress:
    async def tell(step: Step) -> None:
        which = {"call_id": call.pk, "conversation_id": call.conversation_id}
        progressed.send_robust(sender=UpstreamSource, step=step, **which)
        # Whoever calls this passes on the newest step only, and not before this one has been told.
        await asyncio.sleep(PROGRESS_PAUSE_SECONDS)

    return tell
