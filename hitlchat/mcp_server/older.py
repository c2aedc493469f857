"""The arm for clients of 2025 and older: a request to the client, with a limit, while its own request stays open."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial

import anyio
import mcp_types as types
from django.conf import settings
from django.utils import timezone
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from hitlchat.gate.settling import watched
from hitlchat.gate.status import Status
from hitlchat.mcp_server import answers
from hitlchat.mcp_server.answers import Answer
from hitlchat.mcp_server.asked import Asked
from hitlchat.mcp_server.question import Question

LOOK_SECONDS = 1.0
# The deadline is judged by the database's clock: not before it.
AFTER = timedelta(seconds=0.5)
# A client that cancels and leaves has said so by then.
GONE_SECONDS = 1.0


async def answer(asked: Asked, question: Question, request: types.ElicitRequest) -> Answer:
    """What the client says, or what came first: another outcome of the question, the client's end, or the limit."""
    found: list[Answer] = []
    async with anyio.create_task_group() as race:

        async def run(racer: Callable[[], Awaitable[Answer]]) -> None:
            found.append(await racer())
            race.cancel_scope.cancel()

        race.start_soon(run, partial(_asked, asked.ctx, request))
        race.start_soon(run, partial(_otherwise, question))
        race.start_soon(run, partial(_gone, asked.gone))
    return found[0]


async def _asked(ctx: ServerRequestContext, request: types.ElicitRequest) -> Answer:
    try:
        given = await ctx.session.send_request(
            request,
            types.ElicitResult,
            # On the stream of the call, which its client reads.
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
    except ValidationError:
        return Answer.MALFORMED
    except NoBackChannelError:
        return Answer.ERROR
    except MCPError as error:
        return {types.REQUEST_TIMEOUT: Answer.LATE, types.CONNECTION_CLOSED: Answer.GONE}.get(error.code, Answer.ERROR)
    return answers.read(given)


async def _otherwise(question: Question) -> Answer:
    """The question has its outcome, or its time is up: as it is now, since somebody may put its deadline off."""
    limit = _limit(question)
    while True:
        call = await watched(question.call.pk, LOOK_SECONDS)
        if call.status != Status.WAITING or call.round != question.round:
            return Answer.ELSEWHERE
        assert call.deadline is not None
        assert question.call.deadline is not None
        if timezone.now() > limit + (call.deadline - question.call.deadline):
            return Answer.LATE


async def _gone(gone: asyncio.Event) -> Answer:
    await gone.wait()
    await asyncio.sleep(GONE_SECONDS)
    return Answer.GONE


def _limit(question: Question) -> datetime:
    """Until when the client may hold its request open, unless the deadline is put off."""
    assert question.call.deadline is not None
    longest = timezone.now() + timedelta(seconds=settings.MCP_ELICITATION_SECONDS)
    return min(question.call.deadline, longest) + AFTER
