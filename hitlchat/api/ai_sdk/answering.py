"""Answers of a front end to calls, carried out by the gate as any other: all are looked at before one is given."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from django.db.models import QuerySet

from hitlchat.agent.models import Conversation, Message
from hitlchat.api.ai_sdk.chunks import YES
from hitlchat.api.ai_sdk.posted import Answer, Result, is_as_shown
from hitlchat.base.ids import uuid_of
from hitlchat.base.problems import Conflict
from hitlchat.gate import decide, deciders, question
from hitlchat.gate.actor import Actor
from hitlchat.gate.decide import AlreadySettled, NoSuchApproval, OtherDigest
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.status import Status

Step = Callable[[], object]

SHOWN_OTHERWISE: Final = (
    "The arguments that your page shows are not those of the call that waits, which may have numbers that JavaScript "
    "cannot hold. Nothing was decided: decide it in hitlchat."
)
OF_ANOTHER: Final = "This call is of another conversation. Nothing was decided: answer it there."
ANSWERED_BY_RULE: Final = "Nobody is asked about this call: a rule, or a grant, answered before."
ANSWERED_BY_CLIENT: Final = "This call is answered with its output, and has no approval. Nothing was decided."
RUNS_HERE: Final = "This call runs on the server once it is approved: no client gives its output."


class Completed(Conflict):
    """There is nothing left to answer."""

    code = "already_completed"


def looked_at(
    conversation: Conversation, answers: Iterable[Answer], results: Iterable[Result], actor: Actor
) -> list[Step]:
    """Return what carries out the answers of a person, each by itself, once it is known that all of them can be.

    An answer that stands already, just so, is passed over beside others: a message keeps it until its call is over.

    Raises: NoSuchApproval, Conflict, Completed, AlreadySettled, NotEntitled, OtherDigest, BadAnswer; what else `decide`
    raises, where something happened just then.
    """
    steps: list[Step] = []
    before: list[Conflict] = []
    for answer in answers:
        call, found = _call(conversation, answer.name, actor)
        if call.status != Status.WAITING:
            settled = Completed(ANSWERED_BY_RULE) if found is None else AlreadySettled(call)
            if answer.approved != (call.status in YES):
                raise settled
            before.append(settled)
        elif found is not None:
            steps.append(_decision(found, answer, actor))
    steps += [_answer(conversation, each, actor) for each in results]
    if before and not steps:
        raise before[0]
    return steps


def new(conversation: Conversation, results: Iterable[Result]) -> Sequence[Result]:
    """Return those whose calls wait: a client's message has the results of all the others as well."""
    found = {each.call: each for each in results}
    ids = [call for call in map(uuid_of, found) if call is not None]
    open_calls = ToolCall.objects.filter(pk__in=ids, conversation_id=conversation.pk, status=Status.WAITING)
    return [found[str(call)] for call in open_calls.values_list("pk", flat=True)]


def _decision(found: Approval, answer: Answer, actor: Actor) -> Step:
    """Return what decides the approval, once all is looked at that can be before."""
    if question.is_one(found.call):
        raise Conflict(ANSWERED_BY_CLIENT)
    decide.require(actor, found)
    if not answer.approved:
        return partial(decide.decline, found.pk, actor, reason=answer.reason)
    deciders.require(actor, found)
    if answer.signature is not None and answer.signature != found.digest:
        raise OtherDigest(decide.LOOK_AGAIN)
    if answer.shown is not None and not is_as_shown(answer.shown, found.call.arguments):
        raise OtherDigest(SHOWN_OTHERWISE)
    return partial(decide.approve, found.pk, actor, digest=answer.signature)


def _answer(conversation: Conversation, result: Result, actor: Actor) -> Step:
    """Return what answers a call that is the client's to answer, once all is looked at that can be before."""
    call = uuid_of(result.call)
    found = _here(conversation, _rows().filter(call=call).first() if call else None, actor)
    if not question.is_one(found.call):
        raise Conflict(RUNS_HERE)
    if found.call.status != Status.WAITING:
        raise AlreadySettled(found.call)
    decide.require(actor, found)
    if result.is_error:
        return partial(decide.decline, found.pk, actor, reason=result.error)
    edited = {question.ANSWER: result.output}
    decide.answered(found.call, edited)
    return partial(decide.approve, found.pk, actor, edited=edited)


def _call(conversation: Conversation, name: str, actor: Actor) -> tuple[ToolCall, Approval | None]:
    """Return the call that is answered, by the name of its approval in the protocol, or by the id of that; and the
    approval. None: nobody is asked about it.
    """
    run, separator, call = name.partition("::")
    first, second = uuid_of(run), uuid_of(call)
    if not separator:
        found = _here(conversation, _rows().filter(pk=first).first() if first else None, actor)
        return found.call, found
    if first is None or second is None:
        raise NoSuchApproval(decide.NOT_YOURS)
    asked = _rows().filter(call=second).first()
    unasked = ToolCall.objects.filter(pk=second, conversation_id=conversation.pk).first() if asked is None else None
    answered = unasked or _here(conversation, asked, actor).call
    if answered.turn_id is None or not Message.objects.filter(pk=answered.turn_id, run_id=first).exists():
        raise NoSuchApproval(decide.NOT_YOURS)
    return answered, asked


def _rows() -> QuerySet[Approval]:
    return Approval.objects.select_related("call__tool")


def _here(conversation: Conversation, found: Approval | None, actor: Actor) -> Approval:
    if found is None or not deciders.sees(actor, found):
        raise NoSuchApproval(decide.NOT_YOURS)
    if found.call.conversation_id != conversation.pk:
        raise Conflict(OF_ANOTHER)
    return found
