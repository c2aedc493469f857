"""Follows a run for a client that listens: what is stored of it, then what happens, by the events that pages get."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from time import monotonic
from typing import Any, Final
from uuid import UUID

import django.db
from channels.layers import get_channel_layer
from django.conf import settings
from django.db.models import QuerySet

from hitlchat.agent import writing
from hitlchat.agent.models import ACTIVE, Message, Role, Run, RunStatus
from hitlchat.api import approvals, calls
from hitlchat.api.ai_sdk.chunks import Asked, Chunk, ClientCopy, Turn
from hitlchat.api.auth import Credential
from hitlchat.base import database, event_stream
from hitlchat.base.background import layer_errors
from hitlchat.base.database import in_db
from hitlchat.base.problems import Problem
from hitlchat.gate import attention, deciders, question
from hitlchat.gate import models as gate
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import delegation
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.tools import AGENT

logger = logging.getLogger(__name__)

HEADERS: Final = {"x-vercel-ai-ui-message-stream": "v1"}
# How long a client may go on being told after its person has signed out, or its token was revoked.
CHECK_SECONDS: Final = 5.0
SIGNED_OUT: Final = "You are signed out, or your token is no longer valid."
GONE: Final = "This conversation was deleted."
FAILED: Final = "Something went wrong on the server. Request the conversation again to see what was stored."
DONE: Final = event_stream.text("[DONE]")
# Why a message ended, in the words of the protocol: with it the client does not go on by itself after a stop.
REASONS: Final = {RunStatus.DONE: "stop", RunStatus.STOPPED: "interrupted"}

# How many streams each person has open here.
_open: Counter[int] = Counter()


class TooManyStreams(Problem):
    """The person has as many streams open as allowed."""

    status = 429


def require_room(user_id: int) -> None:
    """Require that this person may open one more stream. Raises: TooManyStreams"""
    if _open[user_id] >= settings.STREAMS_PER_PERSON:
        raise TooManyStreams(f"You already have {settings.STREAMS_PER_PERSON} open streams. Close one first.")


def stream(conversation_id: UUID, credential: Credential, copy: ClientCopy) -> event_stream.EventStream:
    """Return the event stream of a run until it ends or waits for this person."""
    return event_stream.EventStream(_events(conversation_id, credential, copy), HEADERS)


def turns(messages: list[Message]) -> list[Turn]:
    found: dict[UUID | None, list[gate.ToolCall]] = {}
    rows = calls.rows().select_related("tool").filter(turn_id__in=[each.pk for each in messages])
    for call in rows.order_by("position", "created_at"):
        found.setdefault(call.turn_id, []).append(call)
    return [Turn(each, tuple(found.get(each.pk, ()))) for each in messages]


def questions(found: list[Turn], actor: Actor) -> dict[UUID, Asked]:
    """Return the approvals of these calls; those that wait count as shown to the person now."""
    among = [call.pk for turn in found for call in turn.calls if not question.is_one(call)]
    return _questions(gate.Approval.objects.filter(call__in=among), actor) if among else {}


def of_agents(found: list[Turn], actor: Actor) -> list[Asked]:
    """Return the approvals of calls by agents that these calls started, oldest first; they count as shown, too."""
    begun = delegation.below([call.pk for turn in found for call in turn.calls if call.source == AGENT])
    rows = gate.Approval.objects.filter(call__conversation_id__in=begun).order_by("created_at", "pk")
    return list(_questions(rows, actor).values()) if begun else []


def _questions(rows: QuerySet[gate.Approval], actor: Actor) -> dict[UUID, Asked]:
    shown = list(approvals.with_all(rows))
    for row in shown:
        attention.shown(row, actor)
    by_call = {}
    for row, shape in zip(shown, approvals.approvals(shown), strict=True):
        is_open = row.call.status == Status.WAITING and actor.name not in shape.approved_by
        by_call[row.call_id] = Asked(shape, is_open and deciders.may_decide(actor, row.call))
    return by_call


def _stored(copy: ClientCopy, actor: Actor) -> tuple[list[Chunk], list[Chunk] | None]:
    """Return the chunks for what is stored and new, and those that end the stream, or None."""
    run = Run.objects.select_related("conversation").filter(pk=copy.run_id, conversation__deleted_at=None).first()
    if run is None:
        return [], [{"type": "error", "errorText": GONE}]
    messages = Message.objects.filter(run=run, seq__gte=copy.since).exclude(role__in=(Role.TOOL, Role.USER))
    found = turns(list(messages.order_by("seq")))
    shown = questions(found, actor)
    written = writing.so_far(run.pk)
    below = of_agents(found, actor)
    chunks = list(copy.update(found, shown, below, written.reasoning if written else ""))
    if run.status not in ACTIVE:
        return chunks, list(_ends(run))
    is_their_turn = _is_their_turn(run, found, shown, actor)
    return chunks, [{"type": "finish", "finishReason": "tool-calls"}] if is_their_turn else None


def _is_their_turn(run: Run, found: list[Turn], shown: dict[UUID, Asked], actor: Actor) -> bool:
    """Return whether the run waits only for decisions, and this person may take one of them."""
    if run.status != RunStatus.WAITING or not run.parked:
        return False
    open_calls = [call for turn in found for call in turn.calls if call.status not in SETTLED]
    waiting = [call for call in open_calls if call.status == Status.WAITING]
    if len(waiting) < len(open_calls):
        return False
    return any(shown[call.pk].may_decide if call.pk in shown else deciders.may_decide(actor, call) for call in waiting)


class Events:
    """The events that a conversation's pages get. A lost event only costs time: `next` returns None then."""

    def __init__(self, conversation_id: UUID) -> None:
        self._group = writing.group(conversation_id)
        self._layer: Any = get_channel_layer()
        self._channel = ""
        # One wait for all: a channel that nobody waits for any more is closed.
        self._coming: asyncio.Task[dict[str, Any]] | None = None

    async def open(self) -> None:
        try:
            self._channel = await self._layer.new_channel()
            await self._layer.group_add(self._group, self._channel)
        except layer_errors() as error:
            self._channel = ""
            logger.warning("The channel layer could not be reached: %s", error)

    async def next(self, seconds: float) -> dict[str, Any] | None:
        """Return the next event, or None after so many seconds without one."""
        if not self._channel:
            await asyncio.sleep(seconds)
            return None
        if self._coming is None:
            self._coming = asyncio.create_task(self._layer.receive(self._channel))
        done, _ = await asyncio.wait({self._coming}, timeout=seconds)
        if not done:
            return None
        coming, self._coming = self._coming, None
        try:
            return coming.result()
        except layer_errors() as error:
            logger.warning("The channel layer could not be reached: %s", error)
            self._channel = ""
            return None

    async def close(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.wait({self._coming})
        if self._channel:
            try:
                await self._layer.group_discard(self._group, self._channel)
            except layer_errors() as error:
                logger.warning("The channel layer could not be reached: %s", error)


async def _events(conversation_id: UUID, credential: Credential, copy: ClientCopy) -> AsyncGenerator[bytes, None]:
    """Yield the stream of one client, with keep-alive comments while nothing happens."""
    coming, checked_at = Events(conversation_id), monotonic()
    event: dict[str, Any] | None = None
    ends: list[Chunk] | None = None
    has_waited = False
    _open[credential.user.pk] += 1
    try:
        yield event_stream.OPEN
        # Before the state is read, so that nothing can happen unseen in between.
        await coming.open()
        yield event_stream.event({"type": "start", "messageId": str(copy.run_id)})
        while ends is None:
            # Again now and then: a stream outlives its request, and must not go on telling.
            if is_due := monotonic() - checked_at > CHECK_SECONDS:
                checked_at = monotonic()
            chunks, ends = await _heard(copy, credential, event, is_due=is_due)
            if chunks:
                yield b"".join(map(event_stream.event, chunks))
            elif has_waited and event is None:
                yield event_stream.KEEP_ALIVE
            if ends is None:
                event, has_waited = await coming.next(settings.STREAM_KEEP_ALIVE_SECONDS), True
        yield b"".join(map(event_stream.event, [*copy.end(), *ends])) + DONE
    finally:
        _open[credential.user.pk] -= 1
        await coming.close()


async def _heard(
    copy: ClientCopy, credential: Credential, event: dict[str, Any] | None, *, is_due: bool
) -> tuple[list[Chunk], list[Chunk] | None]:
    """Return the chunks to send after `event`, and those that end the stream, or None.

    Growing text comes from the event itself, everything else from the database. `is_due`: check the credential again.
    """
    try:
        if is_due and not await in_db(credential.stands)():
            return [], [{"type": "error", "errorText": SIGNED_OUT}]
        if (grown := _grown(copy, event)) is not None:
            return grown, None
        chunks, ends = await in_db(_stored)(copy, credential.actor)
        return chunks + (_grown(copy, event) or [] if ends is None else []), ends
    except django.db.Error as error:
        logger.exception("The stream of run %s failed", copy.run_id)
        return [], [{"type": "error", "errorText": database.SENTENCES.get(database.trouble(error), FAILED)}]


def _grown(copy: ClientCopy, event: dict[str, Any] | None) -> list[Chunk] | None:
    if event is None or event["type"] != "conversation.delta":
        return None
    grown = copy.delta(UUID(event["message"]), event["base"], event["text"])
    return None if grown is None else list(grown)


def _ends(run: Run) -> Iterator[Chunk]:
    if run.status == RunStatus.FAILED:
        yield {"type": "error", "errorText": run.error or FAILED}
        return
    if run.status == RunStatus.STOPPED:
        yield {"type": "abort", "reason": "The run was stopped."}
    yield {"type": "finish", "finishReason": REASONS[RunStatus(run.status)]}
