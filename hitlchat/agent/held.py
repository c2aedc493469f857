"""Calls of a turn that nobody is asked about yet, since enough questions are open. They stand in the turn's message and
have no row; as questions are answered they are put to the gate, in the model's order."""

from typing import Any
from uuid import UUID

from hitlchat.agent.models import Message, Role, Run
from hitlchat.base import canonical
from hitlchat.gate import queue
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, Prepared, admit

STOPPED = "The run ended before anyone was asked about this call."


def count(turn_id: UUID | None) -> int:
    return len(_left(turn_id))


def fits(run: Run) -> bool:
    """Whether a held-back call of the open turn could be asked about now. `run` is read with its conversation."""
    return bool(count(run.turn_id)) and _room(run) > 0


def next_of(run: Run) -> list[CallRequest]:
    """Those that there is room for. `run` is read with its conversation and the owner of that."""
    return _requests(run)[: max(0, _room(run))]


def give_up(run: Run) -> None:
    """Put them on record as what became of them: nothing. A model server insists on an answer to each."""
    for request in _requests(run):
        admit(Prepared(request, Status.WITHDRAWN, STOPPED))


def _room(run: Run) -> int:
    return queue.room(run.conversation.owner_id, run.conversation_id)


def _left(turn_id: UUID | None) -> list[tuple[int, dict[str, Any]]]:
    wire = Message.objects.filter(pk=turn_id).values_list("wire", flat=True).first() if turn_id else None
    calls = canonical.loads(wire).get("tool_calls", []) if wire else []
    known = set(ToolCall.objects.filter(turn_id=turn_id).values_list("position", flat=True)) if calls else set()
    return [(position, call) for position, call in enumerate(calls) if position not in known]


def _requests(run: Run) -> list[CallRequest]:
    owner = run.conversation.owner
    said = Message.objects.filter(run=run, role=Role.USER).values_list("content", flat=True).first()
    return [
        CallRequest(
            tool_name=call["function"]["name"],
            arguments=call["function"]["arguments"],
            caller=Caller("chat", owner.pk, owner.get_username()),
            among=run.conversation.tools,
            conversation_id=run.conversation_id,
            turn_id=run.turn_id,
            position=position,
            model_call_id=call["id"],
            user_prompt=said or "",
        )
        for position, call in _left(run.turn_id)
    ]
