"""Asking about one call: one function with two arms, and other ways for clients that cannot be asked."""

from typing import Final

import mcp_types as types

from hitlchat.base.database import in_db
from hitlchat.gate import attention, withdraw
from hitlchat.gate.models import Approval
from hitlchat.mcp_server import answers, older, states, tokens
from hitlchat.mcp_server.answers import Answer
from hitlchat.mcp_server.asked import Asked
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.question import Question
from hitlchat.mcp_server.ways import Way

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
        answer = await older.answer(asked, question, request)
    elif given is None:
        state = await in_db(states.seal)(asked, question, chosen)
        return types.InputRequiredResult(input_requests={KEY: request}, request_state=state)
    else:
        answer = answers.read(given)
    return await in_db(_take)(asked, question, chosen, answer)


def _delivered(asked: Asked, question: Question) -> None:
    """As far as this server can tell: whether its user sees it, only the client knows."""
    rows = Approval.objects.select_related("call").defer("disclosure")
    attention.shown(rows.get(pk=question.approval_id), asked.word)


def _take(asked: Asked, question: Question, chosen: Way, answer: Answer) -> Answer:
    if answer == Answer.ACCEPT and not _may_use_now(asked, question):
        withdraw.withdraw_question(question.call.pk, question.round, actor=asked.access.caller.actor, why=NO_LONGER)
        return answer
    take = answers.take if chosen == Way.FORM else answers.take_to_page
    return take(question, answer, asked.word)


def _may_use_now(asked: Asked, question: Question) -> bool:
    """The request of an older client came before its user thought about the question, for however long."""
    access, tool_id = tokens.as_now(asked.access), question.call.tool_id
    return access is not None and tool_id is not None and visible(access).filter(pk=tool_id).exists()


def _request(asked: Asked, question: Question, chosen: Way) -> types.ElicitRequest:
    if chosen == Way.FORM:
        return types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=question.message, requested_schema=answers.FORM)
        )
    return types.ElicitRequest(
        params=types.ElicitRequestURLParams(
            message=f"A signed-in person has to decide this call, on the page at this address. {question.short}",
            url=asked.address_of(question.approval_id),
            elicitation_id=None if asked.is_modern else str(question.approval_id),
        )
    )
