"""The addresses of the AI SDK's chat transport: messages and answers in, a stream of events out.

The gate carries out the answers of a front end as any other: all are looked at before one is given.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Final, Literal
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import Field

from hitlchat.agent import conversations, runner
from hitlchat.agent import models as agent
from hitlchat.agent.models import ACTIVE, Conversation, Message, Role, Run, SentMessage
from hitlchat.api.ai_sdk import following, posted
from hitlchat.api.ai_sdk.chunks import YES, ClientCopy, Part, parts
from hitlchat.api.auth import ApiRequest, decider
from hitlchat.api.contract import Object, Shape
from hitlchat.base.ids import uuid_of
from hitlchat.base.problems import Conflict
from hitlchat.gate import counting, decide, deciders, question
from hitlchat.gate.actor import Actor
from hitlchat.gate.decide import AlreadySettled, NoSuchApproval, OtherDigest
from hitlchat.gate.models import Approval, ToolCall, delegation
from hitlchat.gate.status import Status

router = Router(tags=["chat"], by_alias=True)
NOTHING_NEW: Final = (
    "This message has nothing new. Say something, or answer a waiting call. To keep listening, request the stream "
    "again."
)
EVENTS: Final = {
    "responses": {
        200: {
            "description": "A UI message stream of the AI SDK (`x-vercel-ai-ui-message-stream: v1`).",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
}
Step = Callable[[], object]
SHOWN_OTHERWISE: Final = (
    "The arguments on your page differ from those of the waiting call, which may contain numbers that JavaScript "
    "cannot represent. Nothing was decided. Decide in hitlchat."
)
OF_ANOTHER: Final = "This call belongs to another conversation. Nothing was decided: answer it there."
ANSWERED_BY_RULE: Final = "This call has no approval: a rule or a grant decided."
ANSWERED_BY_CLIENT: Final = "This call is a question: answer with its output. Nothing was decided."
RUNS_HERE: Final = "This call runs on the server once approved: clients do not supply its output."


class UiMessage(Shape):
    id: str = Field(description="For assistant messages, the run's id.")
    role: Literal["user", "assistant"]
    parts: list[Object]


class Chat(Shape):
    id: UUID
    messages: list[UiMessage]


class Submitted(Shape):
    status: Literal["accepted"] = "accepted"
    active: bool = Field(description="Whether the assistant is still working; if so, there is a stream to request.")


@router.post("", response={200: None}, openapi_extra=EVENTS)
def chat(request: ApiRequest, body: posted.PostedChat) -> HttpResponseBase:
    """Say something, say it otherwise, have it answered again, or answer calls; then hear the assistant.

    What the AI SDK's `sendMessage`, `regenerate` and `addToolApprovalResponse` send. The stream ends with the run, or
    where it is your turn. 409 while the assistant still works, and for an answer that does not count any more.
    """
    found = get_object_or_404(_mine(request), pk=body.id)
    # Before anything is said that would not be heard.
    following.require_room(request.auth.user.pk)
    if body.trigger == "regenerate-message":
        run_id = _run_of(found, body.message_id, request)
        copy = ClientCopy(runner.instead(found, run_id, None))
    elif (message := body.message).role == "assistant":
        copy = _answered(request, found, message)
    else:
        copy = ClientCopy(_message_run(request, found, message, is_edit=body.message_id is not None))
    return following.stream(found.pk, request.auth, copy)


@router.get("/{uuid:conversation_id}", response=Chat)
def read_chat(request: ApiRequest, conversation_id: UUID) -> Chat:
    """The conversation as UI messages, to begin `useChat` with. Calls that wait for you count as shown."""
    found = get_object_or_404(_mine(request), pk=conversation_id)
    return Chat(id=found.pk, messages=_messages(found, request.auth.actor))


@router.get("/{uuid:conversation_id}/stream", response={200: None, 204: None}, openapi_extra=EVENTS)
def resume(request: ApiRequest, conversation_id: UUID) -> HttpResponseBase:
    """Hear the run that goes on or waits, from its beginning on; 204 if there is none."""
    found = get_object_or_404(_mine(request), pk=conversation_id)
    following.require_room(request.auth.user.pk)
    run = Run.objects.filter(conversation=found, status__in=ACTIVE).first()
    return HttpResponse(status=204) if run is None else following.stream(found.pk, request.auth, ClientCopy(run.pk))


@router.post("/{uuid:conversation_id}/submit-tool-result", response=Submitted)
def submit(
    request: ApiRequest, conversation_id: UUID, body: posted.ApprovalResponse | posted.ClientResult
) -> Submitted:
    """Answer one call, without a stream: an approval, or what a client gives for a call that is its own to answer.

    409 with the code `already_completed`, where the call has its outcome.
    """
    found = get_object_or_404(_mine(request), pk=conversation_id)
    if body.session_id not in (None, str(found.pk)):
        raise Conflict(OF_ANOTHER)
    answers, results = _submitted(body)
    for step in looked_at(found, answers, results, decider(request)):
        step()
    return Submitted(active=Run.objects.filter(conversation=found, status__in=ACTIVE).exists())


class Completed(Conflict):
    """Nothing is left to answer."""

    code = "already_completed"


def looked_at(
    conversation: Conversation, answers: Iterable[posted.Answer], results: Iterable[posted.Result], actor: Actor
) -> list[Step]:
    """Return one function for each answer that carries it out, after checking that all of them can be.

    An answer that was given before is skipped beside others: a message keeps it until its call is over. So is one of
    several yeses, also if it was taken back since; by itself it is given again.

    Raises: NoSuchApproval, Conflict, Completed, AlreadySettled, NotEntitled, OtherDigest, BadAnswer
    """
    steps: list[Step] = []
    repeated: list[Step] = []
    before: list[Conflict] = []
    for answer in answers:
        call, found = _call(conversation, answer.name, actor)
        if call.status != Status.WAITING:
            settled = Completed(ANSWERED_BY_RULE) if found is None else AlreadySettled(call)
            if answer.approved != (call.status in YES):
                raise settled
            before.append(settled)
        elif found is not None:
            is_repeated = answer.approved and counting.has_said_yes(actor, found)
            (repeated if is_repeated else steps).append(_decision(found, answer, actor))
    steps += [_answer(conversation, each, actor) for each in results]
    if before and not steps:
        raise before[0]
    return steps or repeated


def new(conversation: Conversation, results: Iterable[posted.Result]) -> Sequence[posted.Result]:
    """Return the results of calls that wait; a client's message repeats those of all the others."""
    found = {each.call: each for each in results}
    ids = [call for call in map(uuid_of, found) if call is not None]
    open_calls = ToolCall.objects.filter(pk__in=ids, conversation_id=conversation.pk, status=Status.WAITING)
    return [found[str(call)] for call in open_calls.values_list("pk", flat=True)]


def _submitted(body: posted.ApprovalResponse | posted.ClientResult) -> tuple[list[posted.Answer], list[posted.Result]]:
    if isinstance(body, posted.ClientResult):
        is_error = body.error_text is not None
        return [], [posted.Result(body.tool_call_id, body.output, body.error_text or "", is_error=is_error)]
    call = body.approval_id.partition("::")[2]
    if body.tool_call_id is not None and call and body.tool_call_id != call:
        raise posted.refused("toolCallId", "This approval is for another call.")
    return [posted.Answer(body.approval_id, body.approved, body.reason or "", body.signature)], []


def _answered(request: ApiRequest, found: Conversation, message: posted.PostedMessage) -> ClientCopy:
    """Carry out the answers in an assistant's message, and return the client's copy of its run."""
    answers, results = list(posted.answers(message)), new(found, posted.results(message))
    if not answers and not results:
        raise Completed(NOTHING_NEW)
    steps = looked_at(found, answers, results, decider(request))
    run = _run_of(found, message.id, request)
    for step in steps:
        step()
    copy = ClientCopy(run, steps=sum(part.type == "step-start" for part in message.parts))
    for part in message.tools:
        if (call_id := uuid_of(part.tool_call_id)) is not None:
            copy.knows(call_id, part.state)
    return copy


def _message_run(request: ApiRequest, found: Conversation, message: posted.PostedMessage, *, is_edit: bool) -> UUID:
    """Send a person's message, or put it in place of the one edited, and return its run."""
    run_id = _run_of(found, message.id, request) if is_edit else None
    content = message.content
    if not content and not message.files:
        raise posted.refused("text", "Say something, or attach a file.")
    files = posted.attached(found, message.files)
    if run_id is not None:
        return runner.instead(found, run_id, content, files or None)
    # Said once, however often the client sends it. Of files that come along as data each time another one is made.
    is_same = not any(part.url.startswith("data:") for part in message.files)
    return runner.say(found, content, _key(found, message.id) if is_same else "", files)[1]


def _key(found: Conversation, message_id: str) -> str:
    return f"{found.pk}/{message_id}"


def _run_of(found: Conversation, message_id: str | None, request: ApiRequest) -> UUID:
    """Return the run of a message, by default the last. A person's message may be named by its client's id.

    Raises: Http404
    """
    rows = Run.objects.filter(conversation=found)
    if message_id is None:
        return get_object_or_404(rows, pk=found.tip_id).pk
    try:
        named = UUID(message_id)
    except ValueError:
        sent = SentMessage.objects.filter(owner=request.auth.user, key=_key(found, message_id))
        return get_object_or_404(rows, messages__in=sent.values("message")).pk
    by_message = rows.filter(messages=named, messages__role=Role.USER).first()
    return by_message.pk if by_message else get_object_or_404(rows, pk=named).pk


def _messages(found: Conversation, actor: Actor) -> list[UiMessage]:
    rows = list(found.messages.shown().exclude(role=Role.TOOL).prefetch_related("attachments").order_by("seq"))
    turns = following.turns([row for row in rows if row.role != Role.USER])
    questions = following.questions(turns, actor)
    spoken = {turn.message.pk: turn for turn in turns}
    made: list[UiMessage] = []
    for run_id, group in groupby(rows, key=lambda row: row.run_id):
        of_run = list(group)
        made += [_user_message(row) for row in of_run if row.role == Role.USER]
        if answers := [spoken[row.pk] for row in of_run if row.role != Role.USER]:
            # A notice of its own is what belongs to no run, or came when that was over.
            is_new = run_id is not None and all(each.id != str(run_id) for each in made)
            name = run_id if run_id and is_new else answers[0].message.pk
            found_parts = parts(name, answers, questions, following.of_agents(answers, actor))
            made.append(UiMessage(id=str(name), role="assistant", parts=list(found_parts.values())))
    return made


def _user_message(row: agent.Message) -> UiMessage:
    files: list[Part] = [
        {"type": "file", "mediaType": each.media_type, "filename": each.name, "url": f"/api/attachments/{each.pk}"}
        for each in row.attachments.all()
    ]
    text: list[Part] = [{"type": "text", "text": row.content}] if row.content else []
    return UiMessage(id=str(row.pk), role="user", parts=[*files, *text])


def _mine(request: ApiRequest) -> QuerySet[Conversation]:
    return conversations.of(request.auth.user).select_related("endpoint")


def _decision(found: Approval, answer: posted.Answer, actor: Actor) -> Step:
    """Return the function that decides the approval, after all checks that can come first."""
    if question.is_one(found.call):
        raise Conflict(ANSWERED_BY_CLIENT)
    decide.require(actor, found)
    if not answer.approved:
        return partial(decide.decline, found.pk, actor, reason=answer.reason)
    deciders.require(actor, found)
    if found.call.caution_takes_tick:
        # A client of this protocol cannot say that it was read.
        raise decide.CautionUnread
    if answer.signature is not None and answer.signature != found.digest:
        raise OtherDigest(decide.LOOK_AGAIN)
    if answer.shown is not None and not posted.is_as_shown(answer.shown, found.call.arguments):
        raise OtherDigest(SHOWN_OTHERWISE)
    return partial(decide.approve, found.pk, actor, digest=answer.signature, reason=answer.reason)


def _answer(conversation: Conversation, result: posted.Result, actor: Actor) -> Step:
    """Return the function that answers a question, after all checks that can come first."""
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
    """Return a call and its approval, by the approval's name in the protocol or its id.

    The approval is None if nobody is asked about the call.
    """
    run, separator, call = name.partition("::")
    first, second = uuid_of(run), uuid_of(call)
    if not separator:
        approval = _here(conversation, _rows().filter(pk=first).first() if first else None, actor)
        return approval.call, approval
    if first is None or second is None:
        raise NoSuchApproval(decide.NOT_YOURS)
    found = _rows().filter(call=second).first()
    unasked = ToolCall.objects.filter(pk=second, conversation_id=conversation.pk).first() if found is None else None
    answered = unasked or _here(conversation, found, actor).call
    if answered.turn_id is None or not Message.objects.filter(pk=answered.turn_id, run_id=first).exists():
        raise NoSuchApproval(decide.NOT_YOURS)
    return answered, found


def _rows() -> QuerySet[Approval]:
    return Approval.objects.select_related("call__tool")


def _here(conversation: Conversation, found: Approval | None, actor: Actor) -> Approval:
    if found is None or not deciders.sees(actor, found):
        raise NoSuchApproval(decide.NOT_YOURS)
    of = found.call.conversation_id
    # Its own, or one of an agent that works for it.
    if of is None or conversation.pk not in delegation.with_those_above([of])[of]:
        raise Conflict(OF_ANOTHER)
    return found
