"""What a client answered, and what that makes of the call. Only a plain yes makes it run."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import mcp_types as types

from hitlchat.gate import decide, withdraw
from hitlchat.gate.actor import Actor
from hitlchat.mcp_server.question import Question


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


def read(given: object) -> Answer:
    """The answer in a result of elicitation; whatever is not exactly one of the three is malformed."""
    if not isinstance(given, types.ElicitResult) or not _is_empty(given.content):
        return Answer.MALFORMED
    return Answer(given.action)


def take(question: Question, answer: Answer, word: Actor) -> Answer:
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
