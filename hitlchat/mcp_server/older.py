"""The arm for clients of 2025 and older: a request to the client, with a limit, while its own request stays open."""

import asyncio
from collections.abc import Awaitable, Callable
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
AFTER_SECONDS = 0.5
# A client that cancels and leaves has said so by then.
GONE_SECONDS = 1.0


async def answer(asked: Asked, question: Question, request: types.ElicitRequest) -> Answer:
    """What the client says, or what came first: another outcome of the question, the client's end, or the limit."""
    found: list[Answer] = []
    async with anyio.create_task_group() as race:

        async def run(racer: Callable[[], Awaitable[Answer]]) -> None:
            found.append(await racer())
            race.cancel_scope.cancel()

        race.start_soon(run, partial(_asked, asked.ctx, request, _seconds(question)))
        race.start_soon(run, partial(_elsewhere, question))
        race.start_soon(run, partial(_gone, asked.gone))
    return found[0]


async def _asked(ctx: ServerRequestContext, request: types.ElicitRequest, seconds: float) -> Answer:
    try:
        given = await ctx.session.send_request(
            request,
            types.ElicitResult,
            request_read_timeout_seconds=seconds,
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


async def _elsewhere(question: Question) -> Answer:
    while True:
        call = await watched(question.call.pk, LOOK_SECONDS)
        if call.status != Status.WAITING or call.round != question.round:
            return Answer.ELSEWHERE


async def _gone(gone: asyncio.Event) -> Answer:
    await gone.wait()
    await asyncio.sleep(GONE_SECONDS)
    return Answer.GONE


def _seconds(question: Question) -> float:
    assert question.call.deadline is not None
    left = (question.call.deadline - timezone.now()).total_seconds() + AFTER_SECONDS
    return max(0.1, min(left, settings.MCP_ELICITATION_SECONDS + AFTER_SECONDS))
