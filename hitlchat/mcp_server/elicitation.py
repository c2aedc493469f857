"""Elicitation about one call over MCP, in both protocols, and what the client's answer makes of it.

`requestState` is the question that a client of 2026-07-28 brings back with its answer. It is sealed with keys that all
processes share, holds for one token, tool and arguments, and is good for one answer, which the database sees to.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final
from uuid import UUID

import anyio
import mcp_types as types
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.gate import attention, decide, stopping
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval
from hitlchat.gate.settling import watched
from hitlchat.gate.status import Status
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.models import Submission
from hitlchat.mcp_server.question import Question, Way
from hitlchat.mcp_server.request import ToolRequest
from hitlchat.secrets import sealing

NOT_ENOUGH = "the client's user declined it, as the client says; a signed-in person has to decide this call"
NOT_OPENED = "the client's user did not want to open the page on which the call is decided"
# Nothing to fill in: yes or no is in the action.
FORM: Final[dict[str, Any]] = {"type": "object", "properties": {}}
LOOK_SECONDS = 1.0
# The deadline is judged by the database's clock: not before it.
AFTER = timedelta(seconds=0.5)
# A client that cancels and leaves has said so by then.
GONE_SECONDS = 1.0
# Under which the question, and its answer, stand in a result and in the call made once more.
KEY: Final = "approval"
NO_LONGER: Final = gettext_noop("its token may no longer use this tool")
PURPOSE = "mcp request state"
LONGEST_STATE = 4096


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


def read_answer(given: object) -> Answer:
    """The answer in a result of elicitation; whatever is not exactly one of the three is malformed.

    A yes comes without content, since none was asked for. A no is one with whatever else.
    """
    if not isinstance(given, types.ElicitResult) or (given.action == "accept" and given.content):
        return Answer.MALFORMED
    return Answer(given.action)


def take_answer(question: Question, answer: Answer, user: Actor) -> Answer:
    """Do as the user said, as far as the client says so; another outcome that the question has by now stands.

    UNHEARD: a yes that did not count, since a signed-in person has to decide by now. The question is still open.
    """
    try:
        match answer:
            case Answer.ACCEPT:
                decide.approve(question.approval_id, user, digest=question.digest)
            case Answer.DECLINE:
                decide.decline(question.approval_id, user)
            case Answer.ELSEWHERE:
                pass
            case _:
                _end(question, user, WHY[answer], late=answer == Answer.LATE)
    except decide.NoSuchApproval:
        if answer == Answer.ACCEPT:
            return Answer.UNHEARD
        _end(question, user, NOT_ENOUGH)
    except (decide.AlreadySettled, decide.OtherDigest):
        # Decided elsewhere, expired, or asked about again: whoever waits sees what became of it.
        pass
    return answer


def take_to_page(question: Question, answer: Answer, user: Actor) -> Answer:
    """Take an answer to being sent to the page: yes means no more than that its user goes there."""
    if answer in WHY:
        _end(question, user, WHY[answer], late=answer == Answer.LATE)
    elif answer == Answer.DECLINE:
        _end(question, user, NOT_OPENED)
    return answer


def _end(question: Question, user: Actor, why: str, *, late: bool = False) -> None:
    if late and decide.expire(question.call):
        return
    stopping.withdraw_question(question.call.pk, question.round, actor=user, why=why)


async def elicit(incoming: ToolRequest, question: Question, request: types.ElicitRequest) -> Answer:
    """Return what the client says, or what came first.

    Another outcome of the question, the client's end, or the limit.
    """
    found: list[Answer] = []
    async with anyio.create_task_group() as race:

        async def run(racer: Callable[[], Awaitable[Answer]]) -> None:
            found.append(await racer())
            race.cancel_scope.cancel()

        race.start_soon(run, partial(_client_answer, incoming.ctx, request))
        race.start_soon(run, partial(_other_outcome, question))
        race.start_soon(run, partial(_client_gone, incoming.gone))
    return found[0]


async def _client_answer(ctx: ServerRequestContext, request: types.ElicitRequest) -> Answer:
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


async def _other_outcome(question: Question) -> Answer:
    """Wait for another outcome of the question, or until its time is up: somebody may put its deadline off."""
    limit = _limit(question)
    while True:
        call = await watched(question.call.pk, LOOK_SECONDS)
        if call.status != Status.WAITING or call.round != question.round:
            return Answer.ELSEWHERE
        assert call.deadline is not None
        assert question.call.deadline is not None
        if timezone.now() > limit + (call.deadline - question.call.deadline):
            return Answer.LATE


async def _client_gone(gone: asyncio.Event) -> Answer:
    await gone.wait()
    await asyncio.sleep(GONE_SECONDS)
    return Answer.GONE


def _limit(question: Question) -> datetime:
    """Return until when the client may hold its request open, unless the deadline is put off."""
    assert question.call.deadline is not None
    longest = timezone.now() + timedelta(seconds=settings.MCP_ELICITATION_SECONDS)
    return min(question.call.deadline, longest) + AFTER


async def ask(
    incoming: ToolRequest, question: Question, chosen: Way, given: object = None
) -> types.InputRequiredResult | Answer:
    """Put the question to the client's user. `given`: what the client has sent as the answer, on 2026-07-28.

    There the question is the result of the call; on older revisions it is a request of its own, and this waits.
    """
    request = _request(incoming, question, chosen)
    if chosen == Way.FORM and (given is None or not incoming.is_modern):
        await in_db(_delivered)(incoming, question)
    if not incoming.is_modern:
        answer = await elicit(incoming, question, request)
    elif given is None:
        state = await in_db(seal_state)(incoming, question, chosen)
        return types.InputRequiredResult(input_requests={KEY: request}, request_state=state)
    else:
        answer = read_answer(given)
    return await in_db(_take)(incoming, question, chosen, answer)


def _delivered(incoming: ToolRequest, question: Question) -> None:
    """Note the delivery, as far as this server can tell: whether its user sees it, only the client knows."""
    rows = Approval.objects.select_related("call").defer("disclosure")
    attention.shown(rows.get(pk=question.approval_id), incoming.claimed_user)


def _take(incoming: ToolRequest, question: Question, chosen: Way, answer: Answer) -> Answer:
    if answer == Answer.ACCEPT and not _may_use_now(incoming, question):
        stopping.withdraw_question(question.call.pk, question.round, actor=incoming.access.caller.actor, why=NO_LONGER)
        return answer
    take = take_answer if chosen == Way.FORM else take_to_page
    return take(question, answer, incoming.claimed_user)


def _may_use_now(incoming: ToolRequest, question: Question) -> bool:
    """Return whether the token may use the tool by now: its user may have taken long to answer."""
    access, tool_id = tokens.current_access(incoming.access), question.call.tool_id
    return access is not None and tool_id is not None and visible(access).filter(pk=tool_id).exists()


def _request(incoming: ToolRequest, question: Question, chosen: Way) -> types.ElicitRequest:
    if chosen == Way.FORM:
        return types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=question.message, requested_schema=FORM)
        )
    return types.ElicitRequest(
        params=types.ElicitRequestURLParams(
            message=f"A signed-in person has to decide this call, on the page at this address. {question.short}",
            url=incoming.address_of(question.approval_id),
            elicitation_id=None if incoming.is_modern else str(question.approval_id),
        )
    )


@dataclass(frozen=True)
class RequestState:
    """Ties an answer to a question about a call: in which round and which way it was asked. A yes to being
    sent to a page is none to the call, whatever the rules are by then.
    """

    call_id: UUID
    number: int
    round: int
    way: Way


class AnsweredBefore(Exception):
    """The question got its answer already: another one does not count."""


def seal_state(incoming: ToolRequest, question: Question, way: Way) -> str:
    """Seal the state for one more question about the call."""
    rows = Submission.objects.filter(pk=question.call.pk)
    with transaction.atomic():
        rows.update(questions=F("questions") + 1)
        number = rows.get().questions
    bound = [*_binding(incoming), question.call.pk.hex, number, question.round, way]
    return sealing.seal(canonical.dumps(bound), PURPOSE)


def read_state(incoming: ToolRequest, text: str) -> RequestState:
    """Return the state that a client brought back.

    Raises: MCPError, if it was not made here, or for another token, tool or arguments.
    """
    try:
        match _opened(text):
            case [*binding, str() as call_id, int() as number, int() as asked_in, str() as way]:
                state = RequestState(UUID(call_id), number, asked_in, Way(way))
            case _:
                raise _invalid()
    except (sealing.Unsealable, canonical.NotJson, ValueError) as error:
        raise _invalid() from error
    if binding != _binding(incoming) or not incoming.digest:
        raise _invalid()
    if not Submission.objects.filter(pk=state.call_id, token_id=incoming.access.token_id).exists():
        raise _invalid()
    return state


def use_up_state(state: RequestState) -> None:
    """Use up the one answer that the question may have.

    Raises: AnsweredBefore
    """
    rows = Submission.objects.filter(pk=state.call_id, answered__lt=state.number)
    if rows.update(answered=state.number) != 1:
        raise AnsweredBefore


def _opened(text: str) -> Any:
    if len(text) > LONGEST_STATE:
        raise ValueError("too long")
    return canonical.loads(sealing.unseal(text, PURPOSE))


def _binding(incoming: ToolRequest) -> list[Any]:
    return [incoming.access.token_id, incoming.access.user_id, incoming.digest]


def _invalid() -> MCPError:
    return MCPError(types.INVALID_PARAMS, "requestState: expected the one given for this very call, within its time.")
