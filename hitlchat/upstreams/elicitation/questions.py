"""A question from the moment it is asked to its end, as a row: open, answered, declined, expired or taken back.

Whoever answers may do so in another process than the one that executes the call and waits for the answer.
"""

from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.dispatch import Signal

from hitlchat.base import canonical, database
from hitlchat.base.problems import Conflict, Forbidden, NotFound
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note
from hitlchat.secrets import sealing
from hitlchat.upstreams.elicitation.fields import BadAnswer, Value, checked, fields_of
from hitlchat.upstreams.models import QuestionState, UpstreamQuestion

PURPOSE = "answer to an upstream question"
OPEN = QuestionState.OPEN
EVENTS = {
    QuestionState.OPEN: "call.question_asked",
    QuestionState.ANSWERED: "call.question_answered",
    QuestionState.DECLINED: "call.question_declined",
    QuestionState.EXPIRED: "call.question_expired",
    QuestionState.GONE: "call.question_withdrawn",
}

# Sent after the commit with question_id, call_id, conversation_id and turn_id.
question_changed = Signal()


class NoSuchQuestion(NotFound):
    """No question has this id, or it is someone else's."""


class OnlyPeople(Forbidden):
    """A program's credential tried to answer."""


class NotOpen(Conflict):
    """The question was answered, taken back, or too late; the message says which."""

    def __init__(self, question: UpstreamQuestion) -> None:
        super().__init__(f"This question is no longer open: {question.get_state_display().lower()}.")
        self.question = question


def asked_of(user_id: int | None) -> QuerySet[UpstreamQuestion]:
    """All questions that this person was asked."""
    rows = UpstreamQuestion.objects.select_related("call", "answered_by").filter(call__caller_id=user_id)
    return rows.order_by("asked_at", "pk")


def open_for(user_id: int | None) -> QuerySet[UpstreamQuestion]:
    """Return the questions that this person can answer now."""
    return asked_of(user_id).filter(state=OPEN, deadline__gt=Now(), call__status=Status.EXECUTING)


def open_in(conversation_id: UUID) -> QuerySet[UpstreamQuestion]:
    """Return the questions of one conversation that its owner can answer now."""
    rows = UpstreamQuestion.objects.filter(state=OPEN, deadline__gt=Now(), call__status=Status.EXECUTING)
    return rows.filter(call__conversation_id=conversation_id)


def find(question_id: UUID, actor: Actor) -> UpstreamQuestion:
    """OnlyPeople, NoSuchQuestion."""
    if not actor.is_person:
        raise OnlyPeople("Only a person may answer a server's question: sign in, or use an approver token.")
    found = asked_of(actor.user_id).filter(pk=question_id).first()
    if found is None:
        raise NoSuchQuestion("There is no question with this id for you to answer.")
    return found


def store(question: UpstreamQuestion) -> None:
    """Put a new question on record, whether anybody is asked or not."""
    reason = {"reason": question.note} if question.note else {}
    with transaction.atomic():
        question.save(force_insert=True)
        _record(question, QuestionState(question.state), SYSTEM, **reason)


def answer(question_id: UUID, actor: Actor, content: dict[str, Any]) -> UpstreamQuestion:
    """Send an answer: values by the names of fields, or {} for an address. NoSuchQuestion, OnlyPeople, NotOpen,
    BadAnswer.
    """
    question = find(question_id, actor)
    values: dict[str, Value] = {}
    if question.url and content:
        raise BadAnswer(dict.fromkeys(content, "This question has no fields: there is an address to be opened."))
    if not question.url:
        values = checked(fields_of(question.schema), content)
    sealed = sealing.seal(canonical.dumps(values), PURPOSE)
    return _close(question, QuestionState.ANSWERED, actor, sealed=sealed, fields=list(values))


def decline(question_id: UUID, actor: Actor) -> UpstreamQuestion:
    """The person does not want to answer. NoSuchQuestion, OnlyPeople, NotOpen."""
    return _close(find(question_id, actor), QuestionState.DECLINED, actor)


def take(question_id: UUID) -> UpstreamQuestion:
    """Take it as it stands, for the process that waits for it. The values of an answer are given out once, and erased:
    `sealed` is here what was stored.
    """
    question = UpstreamQuestion.objects.get(pk=question_id)
    if question.sealed:
        UpstreamQuestion.objects.filter(pk=question_id).update(sealed="")
    return question


def values_of(question: UpstreamQuestion) -> dict[str, Any]:
    """Return the values that `take` gave out. Raises: Unsealable."""
    found: dict[str, Any] = canonical.loads(sealing.unseal(question.sealed, PURPOSE))
    return found


def give_up(question: UpstreamQuestion, state: QuestionState) -> None:
    """Nobody answered in time, or nobody waits any more; nothing if it was answered meanwhile."""
    try:
        _close(question, state, SYSTEM)
    except NotOpen:
        return


def end_with(call_id: UUID) -> None:
    """The call has settled: what is open or was never taken over comes to nothing."""
    for question in UpstreamQuestion.objects.select_related("call").filter(call_id=call_id, state=OPEN):
        give_up(question, QuestionState.GONE)
    left = UpstreamQuestion.objects.filter(call_id=call_id, state=QuestionState.ANSWERED).exclude(sealed="")
    left.update(sealed="", state=QuestionState.GONE, note="It was answered, but the call ended before that arrived.")


def _close(question: UpstreamQuestion, state: QuestionState, actor: Actor, **columns: Any) -> UpstreamQuestion:
    """Close it: of any number of answers the first one counts. Raises: NotOpen."""
    if actor.is_person:
        columns |= {"answered_by_id": actor.user_id, "means": actor.means, "answered_at": database.now()}
    with transaction.atomic():
        rows = UpstreamQuestion.objects.filter(pk=question.pk, state=OPEN)
        if actor.is_person:
            rows = rows.filter(deadline__gt=Now(), call__status=Status.EXECUTING)
        if rows.update(state=state, **columns) != 1:
            raise NotOpen(UpstreamQuestion.objects.get(pk=question.pk))
        _record(question, state, actor, **{name: columns[name] for name in ("fields",) if name in columns})
    return UpstreamQuestion.objects.select_related("call", "answered_by").get(pk=question.pk)


def _record(question: UpstreamQuestion, state: QuestionState, actor: Actor, **data: Any) -> None:
    """Put it on the call's record and, after the commit, tell whoever waits or looks on."""
    which = {"question": str(question.pk), "server": question.server_name}
    note(question.call_id, EVENTS[state], actor=actor, data=which | data)
    call: ToolCall = question.call
    more = {"call_id": call.pk, "conversation_id": call.conversation_id, "turn_id": call.turn_id}
    transaction.on_commit(
        partial(question_changed.send_robust, sender=UpstreamQuestion, question_id=question.pk, **more), robust=True
    )


def on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    # Whoever executes it to its end sees to that by itself; here it may be that nobody is left who could.
    if status == Status.UNKNOWN:
        end_with(call_id)
