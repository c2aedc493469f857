"""`requestState`: the question that a client of 2026-07-28 brings back with its answer. It is sealed with keys that all
processes share, holds for one token, tool and arguments, and is good for one answer, which the database sees to.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import mcp_types as types
from django.db import transaction
from django.db.models import F
from mcp.shared.exceptions import MCPError

from hitlchat.base import canonical
from hitlchat.mcp_server.models import Submission
from hitlchat.mcp_server.question import Question, Way
from hitlchat.mcp_server.request import Asked
from hitlchat.secrets import sealing

PURPOSE = "mcp request state"
LONGEST = 4096


@dataclass(frozen=True)
class State:
    """Ties an answer to a question about a call: in which round and which way it was asked. A yes to being
    sent to a page is none to the call, whatever the rules are by then.
    """

    call_id: UUID
    number: int
    round: int
    way: Way


class AnsweredBefore(Exception):
    """The question got its answer already: another one does not count."""


def seal(asked: Asked, question: Question, way: Way) -> str:
    """Seal the state for one more question about the call."""
    rows = Submission.objects.filter(pk=question.call.pk)
    with transaction.atomic():
        rows.update(questions=F("questions") + 1)
        number = rows.get().questions
    return sealing.seal(canonical.dumps([*_binding(asked), question.call.pk.hex, number, question.round, way]), PURPOSE)


def read(asked: Asked, text: str) -> State:
    """MCPError when it was not made here, or for another token, tool or arguments."""
    try:
        match _opened(text):
            case [*binding, str() as call_id, int() as number, int() as asked_in, str() as way]:
                state = State(UUID(call_id), number, asked_in, Way(way))
            case _:
                raise _invalid()
    except (sealing.Unsealable, canonical.NotJson, ValueError) as error:
        raise _invalid() from error
    if binding != _binding(asked) or not asked.digest:
        raise _invalid()
    if not Submission.objects.filter(pk=state.call_id, token_id=asked.access.token_id).exists():
        raise _invalid()
    return state


def use_up(state: State) -> None:
    """The one answer to this question is there. AnsweredBefore."""
    rows = Submission.objects.filter(pk=state.call_id, answered__lt=state.number)
    if rows.update(answered=state.number) != 1:
        raise AnsweredBefore


def _opened(text: str) -> Any:
    if len(text) > LONGEST:
        raise ValueError("too long")
    return canonical.loads(sealing.unseal(text, PURPOSE))


def _binding(asked: Asked) -> list[Any]:
    return [asked.access.token_id, asked.access.user_id, asked.digest]


def _invalid() -> MCPError:
    return MCPError(types.INVALID_PARAMS, "requestState: expected the one given for this very call, within its time.")
