"""The asker: the side of a question that executes the call. It asks, waits, and hands the answer to the server."""

import asyncio
from collections import defaultdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from hitlchat.base import database
from hitlchat.base.background import Waker
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.gate.models import ToolCall
from hitlchat.secrets import sealing
from hitlchat.upstreams.client import Question, Reply, unasked
from hitlchat.upstreams.elicitation import judging, questions
from hitlchat.upstreams.models import QuestionState, UpstreamQuestion

# Another process may take the answer, which no event of this one tells.
LOOK_AGAIN_SECONDS = 1.0

_waiters: dict[UUID, set[Waker]] = defaultdict(set)


class Asker:
    """Asks the person on whose behalf `call` executes; one for each call."""

    def __init__(self, call: ToolCall, server: str) -> None:
        self._call, self._server = call, server
        self._has_asked = False
        self._unasked: list[str] = []

    async def ask(self, question: Question) -> Reply:
        self._has_asked = True
        asked = await in_db(_stored)(self._call, question)
        if asked.state != QuestionState.OPEN:
            return unasked()
        try:
            return await self._answer(asked)
        except asyncio.CancelledError:
            await asyncio.shield(in_db(questions.give_up)(asked, QuestionState.GONE))
            raise

    def declined(self, why: str) -> None:
        """Decline without anybody having been asked. Told once for each reason: a server may ask for ever."""
        if why not in self._unasked:
            self._unasked.append(why)

    async def close(self) -> None:
        """The call has ended."""
        for why in self._unasked:
            await in_db(_store_unasked)(self._call, self._server, why)
        if self._has_asked:
            await in_db(questions.end_with)(self._call.pk)

    async def _answer(self, asked: UpstreamQuestion) -> Reply:
        now = asyncio.get_running_loop().time
        end = now() + settings.MCP_QUESTION_SECONDS
        waker = Waker()
        _waiters[asked.pk].add(waker)
        try:
            while (left := end - now()) > 0:
                waker.clear()
                found = await in_db(questions.take)(asked.pk)
                if found.state != QuestionState.OPEN:
                    return _reply(found)
                await _woken(waker, min(left, LOOK_AGAIN_SECONDS))
        finally:
            _waiters[asked.pk].discard(waker)
            if not _waiters[asked.pk]:
                del _waiters[asked.pk]
        await in_db(questions.give_up)(asked, QuestionState.EXPIRED)
        # Answered in the last moment, perhaps.
        return _reply(await in_db(questions.take)(asked.pk))


async def _woken(waker: Waker, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await waker.wait()
    except TimeoutError:
        return


def _reply(found: UpstreamQuestion) -> Reply:
    match found.state:
        case QuestionState.ANSWERED:
            try:
                return Reply("accept", questions.values_of(found))
            except sealing.Unsealable:
                # Answered under another SECRET_KEY than this process has: nobody can read it here.
                return Reply("cancel")
        case QuestionState.DECLINED:
            return Reply("decline")
        case _:
            return Reply("cancel")


def _stored(call: ToolCall, question: Question) -> UpstreamQuestion:
    with transaction.atomic():
        # Of several that come at the same time each counts those before it.
        list(ToolCall.objects.select_for_update().filter(pk=call.pk))
        why = judging.obstacle(question, judging.states_of(call.pk))
        row = _row(call, question.server, why)
        row.message, row.url = storable(question.message), storable(question.url)
        row.schema = {} if why else question.schema
        questions.store(row)
    return row


def _store_unasked(call: ToolCall, server: str, why: str) -> None:
    """Store it without the server's words: they may be about someone else's call."""
    questions.store(_row(call, server, f"Nobody was asked, since {why}."))


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
