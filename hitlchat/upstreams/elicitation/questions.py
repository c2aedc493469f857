"""Questions as rows, from asking to answering, which may happen in another process than the one that waits."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from mcp_types import ElicitResult

from hitlchat.base import canonical, database
from hitlchat.base.background import Waker
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.forms import BadAnswer, Value, checked
from hitlchat.base.problems import Conflict, Forbidden, NotFound, required
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note
from hitlchat.secrets import sealing
from hitlchat.upstreams.client.link import UNASKED, Question
from hitlchat.upstreams.elicitation import screening
from hitlchat.upstreams.elicitation.screening import fields_of
from hitlchat.upstreams.models import QuestionState, UpstreamQuestion, question_changed

PURPOSE = "answer to an upstream question"
OPEN = QuestionState.OPEN
# Questions that can be answered now, by the database's clock.
IS_OPEN: Final = Q(state=OPEN, deadline__gt=Now(), call__status=Status.EXECUTING)
EVENTS = {
    QuestionState.OPEN: "call.question_asked",
    QuestionState.ANSWERED: "call.question_answered",
    QuestionState.DECLINED: "call.question_declined",
    QuestionState.EXPIRED: "call.question_expired",
    QuestionState.GONE: "call.question_withdrawn",
}
# The answer may be given in another process, and no event reaches this one.
LOOK_AGAIN_SECONDS = 1.0

_waiters: dict[UUID, set[Waker]] = defaultdict(set)


class NotOpen(Conflict):
    """The question was answered, taken back, or too late; the message says which."""

    def __init__(self, question: UpstreamQuestion) -> None:
        label = question.get_state_display().lower()
        super().__init__(f"This question is no longer open: {label}.")
        self.question = question


def asked_of(user_id: int | None) -> QuerySet[UpstreamQuestion]:
    rows = UpstreamQuestion.objects.select_related("call", "answered_by").filter(call__caller_id=user_id)
    return rows.order_by("asked_at", "pk")


def open_for(user_id: int | None) -> QuerySet[UpstreamQuestion]:
    return asked_of(user_id).filter(IS_OPEN)


def open_by_conversation(user_id: int) -> dict[UUID | None, int]:
    """Map conversations, and None for calls without one, to how many questions this person can answer there now."""
    return dict(_by_conversation(user_id))


def count_open(user_id: int) -> int:
    return sum(open_by_conversation(user_id).values())


@compiled
def open_in(conversation_id: UUID) -> QuerySet[UpstreamQuestion, UUID]:
    """The ids of the questions in one conversation that its owner can answer now."""
    return UpstreamQuestion.objects.filter(IS_OPEN, call__conversation_id=conversation_id).values_list("pk", flat=True)


def find(question_id: UUID, actor: Actor) -> UpstreamQuestion:
    """Return a question that this person may answer. Raises: Forbidden, NotFound"""
    if not actor.is_person:
        raise Forbidden("Only a person may answer a server's question: sign in, or use an approver token.")
    found = asked_of(actor.user_id).filter(pk=question_id).first()
    return required(found, NotFound("There is no question with this id that you can answer."))


def store(question: UpstreamQuestion) -> None:
    """Put a new question on record, whether anybody is asked or not."""
    reason = {"reason": question.note} if question.note else {}
    with transaction.atomic():
        question.save(force_insert=True)
        _record(question, QuestionState(question.state), SYSTEM, **reason)


def answer(question_id: UUID, actor: Actor, content: dict[str, Any]) -> UpstreamQuestion:
    """Answer: values by field, {} for an address. Raises: NotFound, Forbidden, NotOpen, BadAnswer"""
    question = find(question_id, actor)
    values: dict[str, Value] = {}
    if question.url and content:
        raise BadAnswer(dict.fromkeys(content, "This question has no fields: open the address instead."))
    if not question.url:
        values = checked(fields_of(question.schema), content)
    sealed = sealing.seal(canonical.dumps(values), PURPOSE)
    return _close(question, QuestionState.ANSWERED, actor, sealed=sealed, fields=list(values))


def decline(question_id: UUID, actor: Actor) -> UpstreamQuestion:
    """Decline a question for its person. NotFound, Forbidden, NotOpen."""
    return _close(find(question_id, actor), QuestionState.DECLINED, actor)


def take(question_id: UUID) -> UpstreamQuestion:
    """Return the question as it is now. The values of an answer are given out once, and erased from the row."""
    question = UpstreamQuestion.objects.get(pk=question_id)
    if question.sealed:
        UpstreamQuestion.objects.filter(pk=question_id).update(sealed="")
    return question


def give_up(question: UpstreamQuestion, state: QuestionState) -> None:
    """Close a question that nobody answered in time, or nobody waits for; no effect if it was answered."""
    with suppress(NotOpen):
        _close(question, state, SYSTEM)


def end_with(call_id: UUID) -> None:
    """Withdraw the questions of a settled call: open ones, and answers never taken over."""
    for question in UpstreamQuestion.objects.select_related("call").filter(call_id=call_id, state=OPEN):
        give_up(question, QuestionState.GONE)
    left = UpstreamQuestion.objects.filter(call_id=call_id, state=QuestionState.ANSWERED).exclude(sealed="")
    left.update(
        sealed="",
        state=QuestionState.GONE,
        note="The question was answered, but the call ended before the answer arrived.",
    )


@compiled
def _by_conversation(user_id: int) -> QuerySet[UpstreamQuestion, tuple[UUID | None, int]]:
    rows = UpstreamQuestion.objects.filter(IS_OPEN, call__caller_id=user_id).order_by()
    grouped = rows.values("call__conversation_id").annotate(times=Count("pk"))
    return grouped.values_list("call__conversation_id", "times")


def _close(question: UpstreamQuestion, state: QuestionState, actor: Actor, **columns: Any) -> UpstreamQuestion:
    """Close a question, only once: the first answer counts. Raises: NotOpen"""
    if actor.is_person:
        columns |= {"answered_by_id": actor.user_id, "means": actor.means, "answered_at": database.now()}
    with transaction.atomic():
        rows = UpstreamQuestion.objects.filter(IS_OPEN if actor.is_person else Q(state=OPEN), pk=question.pk)
        if rows.update(state=state, **columns) != 1:
            raise NotOpen(UpstreamQuestion.objects.get(pk=question.pk))
        _record(question, state, actor, **{"fields": columns["fields"]} if "fields" in columns else {})
    return UpstreamQuestion.objects.select_related("call", "answered_by").get(pk=question.pk)


def _record(question: UpstreamQuestion, state: QuestionState, actor: Actor, **data: Any) -> None:
    """Record a change of a question and, after the commit, notify open pages and the waiting process."""
    which = {"question": str(question.pk), "server": question.server_name}
    note(question.call_id, EVENTS[state], actor=actor, data=which | data)
    call: ToolCall = question.call
    more = {"call_id": call.pk, "conversation_id": call.conversation_id, "turn_id": call.turn_id}
    database.after_commit(question_changed.send_robust, sender=UpstreamQuestion, question_id=question.pk, **more)


def on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    # A process that finishes the call closes its questions itself. This call may have lost its process.
    if status == Status.UNKNOWN:
        end_with(call_id)


class Asker:
    """Asks the person on whose behalf `call` executes; one for each call."""

    def __init__(self, call: ToolCall, server: str) -> None:
        self._call, self._server = call, server
        self._has_asked = False
        self._unasked: list[str] = []

    async def ask(self, question: Question) -> ElicitResult:
        self._has_asked = True
        row = await in_db(_stored)(self._call, question)
        if row.state != QuestionState.OPEN:
            return UNASKED
        try:
            return await self._answer(row)
        except asyncio.CancelledError:
            await asyncio.shield(in_db(give_up)(row, QuestionState.GONE))
            raise

    def declined(self, why: str) -> None:
        """Note a question that nobody was asked: once for each reason, since a server may ask for ever."""
        if why not in self._unasked:
            self._unasked.append(why)

    async def close(self) -> None:
        for why in self._unasked:
            await in_db(_store_unasked)(self._call, self._server, why)
        if self._has_asked:
            await in_db(end_with)(self._call.pk)

    async def _answer(self, row: UpstreamQuestion) -> ElicitResult:
        now = asyncio.get_running_loop().time
        end = now() + settings.MCP_QUESTION_SECONDS
        waker = Waker()
        _waiters[row.pk].add(waker)
        try:
            while (left := end - now()) > 0:
                waker.clear()
                found = await in_db(take)(row.pk)
                if found.state != QuestionState.OPEN:
                    return _reply(found)
                with suppress(TimeoutError):
                    await asyncio.wait_for(waker.wait(), min(left, LOOK_AGAIN_SECONDS))
        finally:
            _waiters[row.pk].discard(waker)
            if not _waiters[row.pk]:
                del _waiters[row.pk]
        await in_db(give_up)(row, QuestionState.EXPIRED)
        # Answered in the last moment, perhaps.
        return _reply(await in_db(take)(row.pk))


def _reply(found: UpstreamQuestion) -> ElicitResult:
    match found.state:
        case QuestionState.ANSWERED:
            try:
                content = canonical.loads(sealing.unseal(found.sealed, PURPOSE))
                return ElicitResult(action="accept", content=content)
            except sealing.Unsealable:
                # Answered under another SECRET_KEY than this process has: nobody can read it here.
                return UNASKED
        case QuestionState.DECLINED:
            return ElicitResult(action="decline")
        case _:
            return UNASKED


def _stored(call: ToolCall, question: Question) -> UpstreamQuestion:
    with transaction.atomic():
        # Locked, so that of several at the same time each counts those before it.
        list(ToolCall.objects.select_for_update().filter(pk=call.pk))
        earlier = UpstreamQuestion.objects.filter(call=call).values_list("state", flat=True)
        why = screening.obstacle(question, list(earlier))
        row = _row(call, question.server, why)
        row.message, row.url = storable(question.message), storable(question.url)
        row.schema = {} if why else question.schema
        store(row)
    return row


def _store_unasked(call: ToolCall, server: str, why: str) -> None:
    """Store it without the server's words: they may be about someone else's call."""
    store(_row(call, server, translatable(f"Nobody was asked because {why}.")))


def _row(call: ToolCall, server: str, why: str) -> UpstreamQuestion:
    return UpstreamQuestion(
        call=call,
        server_name=server,
        deadline=database.now() + timedelta(seconds=settings.MCP_QUESTION_SECONDS),
        state=QuestionState.DECLINED if why else QuestionState.OPEN,
        note=storable(why),
    )


def on_question(*, question_id: UUID, **_: Any) -> None:
    for waker in tuple(_waiters.get(question_id, ())):
        waker.wake()
