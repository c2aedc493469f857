"""The websocket of every page: how many calls wait for its person. Events carry ids, and many moves at once."""

import asyncio
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final
from uuid import UUID

import django.db
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.layers import get_channel_layer
from django.db.models import QuerySet
from django.urls import path
from django.utils import timezone

from hitlchat.accounts.sign_in import SessionCheck
from hitlchat.approvals.inbox import lines
from hitlchat.base.background import background, layer_errors
from hitlchat.base.database import in_db
from hitlchat.base.statements import MOST, compiled
from hitlchat.gate import card, queue
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status

# A call is in the inbox while it waits; these are the moves into it and out of it.
MOVES: Final = frozenset(
    {Status.WAITING, Status.APPROVED, Status.DECLINED, Status.ANSWERED, Status.EXPIRED, Status.WITHDRAWN}
)
# Moves within this go into one event.
COLLECT_SECONDS: Final = 0.1
MOST_IDS: Final = 50
# Of the pages of everyone: who decides a call that has rules of its own is for each of them to ask.
EVERYONE: Final = "inbox.everyone"
# As the chat does: accepted first, then closed with a code, since a refused handshake would be tried again for ever.
CLOSE_SIGNED_OUT: Final = 4401
# What happens within this after a look is in the next one; for so long times the pages that their person has here.
BETWEEN_SECONDS: Final = 0.5
# Clocks of several processes differ.
CLOCKS: Final = timedelta(seconds=5)
LOOK: Final = "look"

logger = logging.getLogger(__name__)
# The pages of each person in this process. All looks are made in one thread, as is much that others wait for.
_pages: Counter[int] = Counter()
# The moves that are not sent yet, by the loop that is about to send them; one that has ended sends nothing.
_pending: dict[object, set[UUID]] = {}
_lock = Lock()


def group(user_id: int) -> str:
    return f"inbox.person.{user_id}"


def on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    loop = background.loop
    if status not in MOVES or not background.running:
        return
    with _lock:
        is_first = loop not in _pending
        _pending.setdefault(loop, set()).add(call_id)
    if is_first:
        background.spawn(_tell_soon)


async def _tell_soon() -> None:
    await asyncio.sleep(COLLECT_SECONDS)
    with _lock:
        call_ids = {call_id for ids in _pending.values() for call_id in ids}
        _pending.clear()
    groups = await in_db(_groups)(call_ids)
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        for name, ids in groups.items():
            await layer.group_send(name, {"type": "inbox.changed", "asked": ids[:MOST_IDS]})
    except layer_errors() as error:
        logger.warning("The channel layer could not be reached: %s", error)


def _groups(call_ids: Collection[UUID]) -> dict[str, list[str]]:
    """Return whose pages are to look, with the calls that wait.

    Of a call without rules of its own, those of its person.
    """
    found: dict[str, list[str]] = defaultdict(list)
    moved = [*call_ids]
    rows = (row for at in range(0, len(moved), MOST) for row in _moved(moved[at : at + MOST]))
    for pk, status, caller_id, rules in rows:
        ids = found[EVERYONE if rules else group(caller_id)]
        if status == Status.WAITING:
            ids.append(str(pk))
    return found


@compiled
def _moved(call_ids: list[UUID]) -> QuerySet[ToolCall, tuple[UUID, str, int, str]]:
    rows = ToolCall.objects.filter(pk__in=call_ids).order_by()
    return rows.values_list("pk", "status", "caller_id", "oversight_digest")


class InboxConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    async def connect(self) -> None:
        await self.accept()
        user = self.scope["user"]
        self.news: News | None = None
        self.looking: asyncio.Task[None] | None = None
        self.due = asyncio.Event()
        if not user.is_authenticated:
            await self.close(CLOSE_SIGNED_OUT)
            return
        self.news = News(user.pk, self.scope["session"].session_key)
        # Before the first look, so that nothing can happen unseen in between.
        for name in (EVERYONE, group(user.pk)):
            await self.channel_layer.group_add(name, self.channel_name)
        self.due.set()
        self.looking = asyncio.create_task(self._look_on(self.news))

    async def disconnect(self, _code: int) -> None:
        if self.looking is not None:
            self.looking.cancel()
        if self.news is not None:
            for name in (EVERYONE, group(self.news.user_id)):
                await self.channel_layer.group_discard(name, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        """Answer the page, which asks now and then, since events may have been lost."""
        if text_data == LOOK:
            self.due.set()

    async def inbox_changed(self, event: dict[str, Any]) -> None:
        if self.news is not None:
            self.news.hear(event["asked"])
            self.due.set()

    async def _look_on(self, news: "News") -> None:
        """Look once for everything that came since the last look."""
        _pages[news.user_id] += 1
        try:
            while True:
                await self.due.wait()
                self.due.clear()
                try:
                    news_now = await in_db(news.look)()
                except django.db.Error:
                    logger.exception("Looking for waiting calls failed; the next event triggers another try")
                else:
                    if news_now is None:
                        await self.close(CLOSE_SIGNED_OUT)
                        return
                    await self.send(json.dumps(news_now))
                await asyncio.sleep(BETWEEN_SECONDS * _pages[news.user_id])
        finally:
            _pages[news.user_id] -= 1


class News:
    """The news of one page: shown, and still to show. Used by one look at a time."""

    def __init__(self, user_id: int, session_key: str | None) -> None:
        self.user_id = user_id
        self._session = SessionCheck(session_key, user_id)
        self._since: datetime = timezone.now() - CLOCKS
        self._heard: dict[str, None] = {}
        # By the name of the question, as it may be asked again: the call.
        self._shown: dict[str, UUID] = {}

    def hear(self, ids: list[str]) -> None:
        """Take in calls that wait, not necessarily for this person or since just now."""
        self._heard |= dict.fromkeys(ids)
        while len(self._heard) > MOST_IDS:
            del self._heard[next(iter(self._heard))]

    def look(self) -> dict[str, Any] | None:
        """`waiting`: how many, as shown; `came`: what is new, as [{id, tool}]; `gone`: ids of what was new before and
        no longer waits. None: the person is signed out.
        """
        if not self._session.holds():
            return None
        heard, self._heard = {UUID(each) for each in self._heard}, {}
        waits = queue.among(self.user_id, {*heard, *self._shown.values()})
        came = []
        for each in waits:
            mark = card.key(each.approval_id, each.round)
            is_new = each.call_id in heard and (each.called_at > self._since or each.round > 1)
            if is_new and mark not in self._shown and len(self._shown) < MOST_IDS:
                self._shown[mark] = each.call_id
                came.append({"id": str(each.approval_id), "tool": each.tool_name})
        still = {each.call_id for each in waits}
        gone = [mark for mark, call_id in self._shown.items() if call_id not in still]
        for mark in gone:
            del self._shown[mark]
        waiting = str(lines.count_waiting(self.user_id))
        return {"waiting": waiting, "came": came, "gone": [mark[:36] for mark in gone]}


websocket_urlpatterns = [path("ws/inbox", InboxConsumer.as_asgi())]
