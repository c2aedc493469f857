"""Asking about one call over MCP, in both protocols, and what the client's answer makes of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final

import anyio
import mcp_types as types
from django.conf import settings
from django.utils import timezone
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from hitlchat.base.database import in_db
from hitlchat.gate import attention, decide, withdraw
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval
from hitlchat.gate.settling import watched
from hitlchat.gate.status import Status
from hitlchat.mcp_server import states, tokens
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.question import Question, Way
from hitlchat.mcp_server.request import Asked


class Answer(StrEnum):
    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    MALFORMED = "malformed"
    ERROR = "error"
    LATE = "late"
    GONE = "gone"
    ELSEWHERE = "elsewhere"
    UNHEARD = "unheard"


# What ends the question without being an answer to it.
WHY: Final = {
    Answer.CANCEL: "the question was dismissed without an answer",
    Answer.MALFORMED: "the client's answer did not fit the question",
    Answer.ERROR: "the client could not ask its user",
    Answer.LATE: "the client gave no answer in time",
    Answer.GONE: "the client went away before the question was answered",
}
NOT_ENOUGH = "the client's user declined it, as the client says; a signed-in person has to decide this call"
NOT_OPENED = "the client's user did not want to open the page on which the call is decided"

# Nothing to fill in: yes or no is in the action.
FORM: Final[dict[str, Any]] = {"type": "object", "properties": {}}


def read_answer(given: object) -> Answer:
    """The answer in a result of elicitation; whatever is not exactly one of the three is malformed."""
    if not isinstance(given, types.ElicitResult) or not _is_empty(given.content):
        return Answer.MALFORMED
    return Answer(given.action)


def take_answer(question: Question, answer: Answer, word: Actor) -> Answer:
    """Do as the user said, as far as the client says so; another outcome that the question has by now stands.

    UNHEARD: a yes that did not count, since a signed-in person has to decide by now. The question is still open.
    """
    try:
        match answer:
            case Answer.ACCEPT:
                decide.approve(question.approval_id, word, digest=question.digest)
            case Answer.DECLINE:
                decide.decline(question.approval_id, word)
            case Answer.ELSEWHERE:
                pass
            case _:
                _end(question, word, WHY[answer], late=answer == Answer.LATE)
    except decide.NoSuchApproval:
        if answer == Answer.ACCEPT:
            return Answer.UNHEARD
        _end(question, word, NOT_ENOUGH)
    except (decide.AlreadySettled, decide.OtherDigest):
        # Decided elsewhere, expired, or asked about again: whoever waits sees what became of it.
        pass
    return answer


def take_to_page(question: Question, answer: Answer, word: Actor) -> Answer:
    """An answer to being sent to the page: yes means no more than that its user goes there."""
    if answer in WHY:
        _end(question, word, WHY[answer], late=answer == Answer.LATE)
    elif answer == Answer.DECLINE:
        _end(question, word, NOT_OPENED)
    return answer


def _end(question: Question, word: Actor, why: str, *, late: bool = False) -> None:
    if late and decide.expire(question.call):
        return
    withdraw.withdraw_question(question.call.pk, question.round, actor=word, why=why)


def _is_empty(content: Mapping[str, Any] | None) -> bool:
    return not content


LOOK_SECONDS = 1.0
# The deadline is judged by the database's clock: not before it.
AFTER = timedelta(seconds=0.5)
# A client that cancels and leaves has said so by then.
GONE_SECONDS = 1.0


async def elicit(asked: Asked, question: Question, request: types.ElicitRequest) -> Answer:
    """Return what the client says, or what came first.

    Another outcome of the question, the client's end, or the limit.
    """
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
    return read_answer(given)


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
    """Return until when the client may hold its request open, unless the deadline is put off."""
    assert question.call.deadline is not None
    longest = timezone.now() + timedelta(seconds=settings.MCP_ELICITATION_SECONDS)
    return min(question.call.deadline, longest) + AFTER


# Under which the question, and its answer, stand in a result and in the call made once more.
KEY: Final = "approval"
NO_LONGER: Final = "its token may no longer use this tool"


async def ask(
    asked: Asked, question: Question, chosen: Way, given: object = None
) -> types.InputRequiredResult | Answer:
    """Put the question to the client's user. `given`: what the client has sent as the answer, on 2026-07-28.

    There the question is the result of the call; on older revisions it is a request of its own, and this waits.
    """
    request = _request(asked, question, chosen)
    if chosen == Way.FORM and (given is None or not asked.is_modern):
        await in_db(_delivered)(asked, question)
    if not asked.is_modern:
        answer = await elicit(asked, question, request)
    elif given is None:
        state = await in_db(states.seal)(asked, question, chosen)
        return types.InputRequiredResult(input_requests={KEY: request}, request_state=state)
    else:
        answer = read_answer(given)
    return await in_db(_take)(asked, question, chosen, answer)


def _delivered(asked: Asked, question: Question) -> None:
    """Note the delivery, as far as this server can tell: whether its user sees it, only the client knows."""
    rows = Approval.objects.select_related("call").defer("disclosure")
    attention.shown(rows.get(pk=question.approval_id), asked.word)


def _take(asked: Asked, question: Question, chosen: Way, answer: Answer) -> Answer:
    if answer == Answer.ACCEPT and not _may_use_now(asked, question):
        withdraw.withdraw_question(question.call.pk, question.round, actor=asked.access.caller.actor, why=NO_LONGER)
        return answer
    take = take_answer if chosen == Way.FORM else take_to_page
    return take(question, answer, asked.word)


def _may_use_now(asked: Asked, question: Question) -> bool:
    """The request of an older client came before its user thought about the question, for however long."""
    access, tool_id = tokens.as_now(asked.access), question.call.tool_id
    return access is not None and tool_id is not None and visible(access).filter(pk=tool_id).exists()


def _request(asked: Asked, question: Question, chosen: Way) -> types.ElicitRequest:
    if chosen == Way.FORM:
        return types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=question.message, requested_schema=FORM)
        )
    return types.ElicitRequest(
        params=types.ElicitRequestURLParams(
            message=f"A signed-in person has to decide this call, on the page at this address. {question.short}",
            url=asked.address_of(question.approval_id),
            elicitation_id=None if asked.is_modern else str(question.approval_id),
        )
    )
