"""Upstream tools, as the gate executes them: forwarded once a yes is there, and only where it was given for."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Any, assert_never
from uuid import UUID

from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import translatable
from hitlchat.gate import contents, stopping
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.prompt import short
from hitlchat.gate.schema import BadArguments
from hitlchat.gate.sources import OutcomeUnknown, ToolResult
from hitlchat.upstreams import catalog, changes, connections, exposure
from hitlchat.upstreams.client.calls import too_large
from hitlchat.upstreams.client.link import Step
from hitlchat.upstreams.client.results import Answer, NeverRan, Outcome, Rejected, Unknown, Unreadable
from hitlchat.upstreams.client.spec import Limits
from hitlchat.upstreams.connections import NoTarget, target_of
from hitlchat.upstreams.elicitation.questions import Asker
from hitlchat.upstreams.models import ComposedTool, ToolState, UpstreamServer, progressed

LARGEST_RESULT = 2**20
LONGEST_MESSAGE = 4000
USED_EVERY = timedelta(hours=1)


def result_of(outcome: Outcome, server: str) -> ToolResult:
    """Return an outcome as the gate stores it. Raises: OutcomeUnknown, the tool may have run"""
    match outcome:
        case Answer():
            return _answered(outcome)
        case Rejected(code, message):
            return _failure("rejected", f"The server {server} answered with an error instead ({code}): {message}")
        case NeverRan(reason):
            return _failure("unreachable", f"It was not run: {reason}.")
        case Unreadable(reason):
            return _failure("result", f"It was run, but its result cannot be used: {reason}.")
        case Unknown(reason):
            raise OutcomeUnknown(f"The server {server} may have run it: {reason}.")
        case _:
            assert_never(outcome)


def _answered(answer: Answer) -> ToolResult:
    if answer.is_error:
        text = contents.in_one_text(answer.content, answer.structured)
        return _failure("tool", text if text.strip() else "It failed, and its server did not say why.")
    value = contents.value(answer.content, answer.structured)
    try:
        size = len(canonical.dumps(value))
    except canonical.NotJson as error:
        return _failure("result", f"It was run, but its result cannot be stored: {error}.")
    if size > LARGEST_RESULT:
        why = f"It was run, but its result has {size:,} bytes; at most {LARGEST_RESULT:,} can be stored."
        return _failure("result", why)
    return ToolResult(value=value, attachments=answer.attachments)


def _failure(kind: str, message: str) -> ToolResult:
    return ToolResult.failure(kind, short(message, LONGEST_MESSAGE))


class UpstreamSource:
    can_stop = True
    gives_blocks = True

    def hold(self, tools: Collection[UUID]) -> None:
        exposure.lock(ComposedTool.objects.filter(tool__in=tools).values_list("pk", flat=True))

    def configure(self, tool: UUID, settings: Mapping[str, Any], actor: Actor) -> None:
        row = ComposedTool.objects.get(tool=tool)
        try:
            exposure.apply([changes.Change(row.pk, **settings)], actor)
        except changes.Refused as error:
            raise Invalid({each.field: each.sentence for each in error.problems[row.pk]}) from error

    def outside(self, tools: set[UUID]) -> set[UUID]:
        return tools

    def why_gone(self, tool: UUID) -> str:
        rows = ComposedTool.objects.filter(tool=tool, state=ToolState.EXPOSED, server__enabled=True)
        name = rows.filter(server__present=False).values_list("server__name", flat=True).first()
        return translatable(f"its server {name} does not answer") if name else ""

    def unfit(self, tool: Tool, arguments: dict[str, Any]) -> BadArguments | None:  # noqa: ARG002
        why = too_large(arguments, Limits().argument_bytes)
        return BadArguments(translatable(f"It cannot be sent to its server: {why}.")) if why else None

    def altered(self) -> Iterator[str]:
        return catalog.altered()

    async def execute(self, call: ToolCall) -> ToolResult:
        try:
            target = await in_db(target_of)(call)
        except NoTarget as error:
            return ToolResult.failure("unavailable", f"It was not run: {error}")
        used = target.server.used_at
        if used is None or timezone.now() - used > USED_EVERY:
            await in_db(UpstreamServer.objects.filter(pk=target.server.pk).update)(used_at=timezone.now())
        outcome = await _forwarded(call, target)
        if stopping.wish(call).is_set() and isinstance(outcome, Unknown | NeverRan):
            return await in_db(_stopped)(call, outcome, target.server.name)
        return result_of(outcome, target.server.name)


async def _forwarded(call: ToolCall, target: ComposedTool) -> Outcome:
    async def on_progress(step: Step) -> None:
        which = {"call_id": call.pk, "conversation_id": call.conversation_id}
        progressed.send_robust(sender=UpstreamSource, step=step, **which)
        # The caller passes on the newest step only, and not before this one is done.
        await asyncio.sleep(0.2)

    asker = Asker(call, target.server.name)
    how = {"on_progress": on_progress, "on_question": asker.ask, "on_declined": asker.declined}
    try:
        async with connections.upkeep() as upkeep:
            return await upkeep.call(target, call.arguments, cancel=stopping.wish(call), **how)
    finally:
        await asker.close()


def _stopped(call: ToolCall, outcome: Unknown | NeverRan, server: str) -> ToolResult:
    """Return the result of a call that somebody stopped. Raises: OutcomeUnknown, it was sent before that"""
    who = stopping.requested_by(call)
    if isinstance(outcome, Unknown):
        raise OutcomeUnknown(f"it was stopped by {who}: the server {server} was told to stop, and may have run it")
    return ToolResult.failure("unsent", f"It was not run: it was stopped by {who} before it was sent.")
