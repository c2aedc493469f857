"""The websocket of a conversation page, and who may open it: HTML fragments out, commands in. It decides nothing."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID
from weakref import WeakSet

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.urls import path
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.accounts import preferences, sign_in
from hitlchat.accounts.sign_in import SessionCheck, is_still_active
from hitlchat.agent.writing import group, group_of_person, is_before, tell_soon
from hitlchat.base import database
from hitlchat.base.background import Worker, background
from hitlchat.base.database import for_page, in_db
from hitlchat.chat import commands, fragments, layout, transcript_view
from hitlchat.chat.markdown import OpenTail
from hitlchat.chat.transcript_view import MessageView
from hitlchat.gate.actor import Actor, actor_in
from hitlchat.gate.status import SETTLED, STARTED, Status

if TYPE_CHECKING:
    from hitlchat.upstreams.client.link import Step

logger = logging.getLogger(__name__)

# Accepted first and then closed with a code of our own: a refused handshake would be tried again for ever.
CLOSE_SIGNED_OUT: Final = 4401
CLOSE_DEACTIVATED: Final = 4403
CLOSE_NOT_FOUND: Final = 4404
CLOSE_TROUBLE: Final = 1011
# The longest that a page is sent anything after its person has signed out.
CHECK_SECONDS: Final = 5.0
LONGEST_STEP: Final = 200
# Parts of a page, and what draws those around the messages.
ASKS: Final = ("asks",)
RUN: Final = ("run",)
GRANTS: Final = ("grants",)
QUEUED: Final = ("queued",)
EVERYTHING: Final = ("everything",)
AROUND: Final = {RUN: fragments.run, GRANTS: fragments.grants, QUEUED: fragments.queued}

# Its name; then the id of a message, or of a call's turn and of the call.
Part = tuple[str, ...]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass
class Shown:
    """The messages that a page shows (`drawn`), those of them that are whole, and the calls that execute, by their ids.

    `sent`: of a message that is being written how many finished blocks, and which state of the last one.
    """

    drawn: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    executing: set[str] = field(default_factory=set)
    sent: dict[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, views: list[MessageView]) -> "Shown":
        drawn = {str(view.message.pk) for view in views}
        whole = {str(view.message.pk) for view in views if not view.streaming}
        calls = [each.call for view in views for each in view.calls]
        return cls(drawn, whole, {str(call.pk) for call in calls if call.status == Status.EXECUTING})


class ConversationConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One open page of a conversation. Its person may read it until `_may_stay` says otherwise."""

    # Those of this process that were let in.
    pages: ClassVar[WeakSet["ConversationConsumer"]] = WeakSet()
    # Whether the page was let in.
    is_open = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Draw all that a page is sent in the language of the browser that opened it."""
        with translation.override(preferences.of_socket(scope)):
            await super().__call__(scope, receive, send)

    async def dispatch(self, message: dict[str, Any]) -> None:
        if message["type"].startswith("conversation.") and not await self._may_stay():
            return
        # Without Channels' trip to the database thread before each event: streamed text needs no database.
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        await self.accept()
        self.conversation_id: UUID = self.scope["url_route"]["kwargs"]["conversation_id"]
        self.shown = Shown()
        user = self.scope["user"]
        if not user.is_authenticated:
            await self.close(CLOSE_SIGNED_OUT)
            return
        self.user_id: int = user.pk
        self.session = SessionCheck(self.scope["session"].session_key, user.pk)
        self.checked_at = time.monotonic()
        # The last event about each part that has changed, and when the parts were read that are on the page.
        self.due: dict[Part, dict[str, Any]] = {}
        self.read_at: dict[Part, float] = {}
        self.drawing: asyncio.Task[None] | None = None
        # Whoever has it sends what was read before anybody reads anew.
        self.pen = asyncio.Lock()
        if not await for_page(commands.owns)(self.user_id, self.conversation_id):
            await self.close(CLOSE_NOT_FOUND)
            return
        self.is_open = True
        # Before the state is read, so that nothing can happen unseen in between.
        for name in self._groups():
            await self.channel_layer.group_add(name, self.channel_name)
        self.pages.add(self)
        await self._show_everything()

    async def disconnect(self, _code: int) -> None:
        self.pages.discard(self)
        if self.is_open and self.drawing is not None:
            self.drawing.cancel()
        for name in self._groups() if self.is_open else ():
            await self.channel_layer.group_discard(name, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        if self.is_open:
            async with self.pen:
                await self._send(await self._act(text_data or ""))

    async def conversation_message(self, event: dict[str, Any]) -> None:
        self._change(event, ("message", event["message"]))

    async def conversation_delta(self, event: dict[str, Any]) -> None:
        message = event["message"]
        async with self.pen:
            # Else it came after the whole message, or before the page has a place for it.
            if message in self.shown.drawn and message not in self.shown.whole:
                await self._grow(message, await layout.follow(message, event["base"], event["text"]))

    async def conversation_call(self, event: dict[str, Any]) -> None:
        if event["status"] == Status.EXECUTING:
            self.shown.executing.add(event["call"])
        elif event["status"] in SETTLED:
            self.shown.executing.discard(event["call"])
        around = () if event["status"] in STARTED else (ASKS, RUN)
        self._change(event, *around, ("call", event["turn"], event["call"]))

    async def conversation_question(self, event: dict[str, Any]) -> None:
        self._change(event, RUN, ("call", event["turn"], event["call"]))

    async def conversation_progress(self, event: dict[str, Any]) -> None:
        async with self.pen:
            # Elsewhere it has no place: steps may come later than the end.
            if event["call"] in self.shown.executing:
                await self.send(fragments.progress(event["call"], event["done"], event["total"], event["message"]))

    async def conversation_grants(self, event: dict[str, Any]) -> None:
        self._change(event, GRANTS)

    async def conversation_run(self, event: dict[str, Any]) -> None:
        self._change(event, RUN)

    async def conversation_queued(self, event: dict[str, Any]) -> None:
        self._change(event, QUEUED)

    async def conversation_resync(self, event: dict[str, Any]) -> None:
        self._change(event, EVERYTHING)

    async def conversation_gone(self, _event: dict[str, Any]) -> None:
        await self.close(CLOSE_NOT_FOUND)

    async def person_deactivated(self, _event: dict[str, Any]) -> None:
        await self.close(CLOSE_DEACTIVATED)

    def _groups(self) -> tuple[str, str]:
        return group(self.conversation_id), group_of_person(self.user_id)

    async def _may_stay(self) -> bool:
        """Check the session again after some time, as a socket outlives it; close the page if it has ended."""
        if time.monotonic() - self.checked_at < CHECK_SECONDS:
            return self.is_open
        self.checked_at = time.monotonic()
        if await for_page(self.session.holds)():
            return self.is_open
        await self.leave()
        return False

    async def leave(self) -> None:
        """Close the page, whose session has ended; it says which of the two it was."""
        is_active = await for_page(is_still_active)(self.user_id)
        await self.close(CLOSE_SIGNED_OUT if is_active else CLOSE_DEACTIVATED)

    def _change(self, event: dict[str, Any], *parts: Part) -> None:
        """Have parts drawn soon: a page that is behind, as all are while many people ask at once, catches up in one
        go.
        """
        self.due |= dict.fromkeys(parts, event)
        if self.drawing is None or self.drawing.done():
            self.drawing = asyncio.create_task(self._draw())

    async def _draw(self) -> None:
        try:
            while self.due:
                async with self.pen:
                    if EVERYTHING in (due := self._take()):
                        await self._show_everything()
                    elif due:
                        await self._show(due)
        except Exception:
            logger.exception("A page of conversation %s could not be drawn", self.conversation_id)
            # It comes back by itself, and reads everything.
            await self.close(CLOSE_TROUBLE)

    def _take(self) -> list[Part]:
        """Return what is due and was not read since. People wait for cards: messages come after them. A message brings
        the lines of its calls along.
        """
        due = {part: event for part, event in self.due.items() if not is_before(event, self.read_at.get(part, 0.0))}
        lines = {part for part in due if part[0] == "call" and ("message", part[1]) in due}
        self.due = {part: event for part, event in due.items() if part[0] == "message" and ASKS in due}
        return [part for part in due if part not in lines and part not in self.due]

    async def _show_everything(self) -> None:
        messages, earlier = await for_page(transcript_view.messages)(self.conversation_id)
        messages = await layout.laid_out(messages)
        html = await for_page(lambda: fragments.everything(self.conversation_id, self._viewer(), messages, earlier))()
        self.shown = Shown.of(messages)
        await self._send(html)
        for view in messages:
            if view.streaming:
                await self._grow(str(view.message.pk), await layout.catch_up(str(view.message.pk)))

    async def _show(self, due: list[Part]) -> None:
        changed = [part[1] for part in due if part[0] == "message"]
        for message in changed:
            self.shown.sent.pop(message, None)
            layout.forget(message)
        moment, html, written = await for_page(self._read)(due, changed)
        self.read_at |= dict.fromkeys(due, moment)
        await self._send(html)
        for view in await layout.laid_out(written):
            await self._send(await for_page(self._message)(str(view.message.pk), view))

    def _read(self, due: list[Part], changed: list[str]) -> tuple[float, str, list[MessageView]]:
        """Return the moment before they are read, the parts, and the messages among them that are to be laid out."""
        moment, where = time.monotonic(), self.conversation_id
        drawn = [fragments.asks(where, self._viewer())] if ASKS in due else []
        drawn += [draw(where) for part, draw in AROUND.items() if part in due]
        # A call's line has no place before its message is drawn.
        lines = [part[1:] for part in due if part[0] == "call" and part[1] in self.shown.whole]
        drawn += [fragments.call(where, UUID(call)) for _, call in lines]
        views = {message: transcript_view.message(where, UUID(message)) for message in changed}
        written = [view for view in views.values() if view is not None and layout.is_written(view)]
        drawn += [self._message(message, view) for message, view in views.items() if view not in written]
        return moment, fragments.BREAK.join(filter(None, drawn)), written

    def _message(self, message: str, view: MessageView | None) -> str:
        html = fragments.message(message, view, is_there=message in self.shown.drawn)
        self.shown.drawn.add(message)
        if f"m-{message}-tail" not in html:
            self.shown.whole.add(message)
        return html

    async def _grow(self, message: str, tail: OpenTail | None) -> None:
        if tail is None:
            return
        # The thread that lays out may go on meanwhile.
        drawn, blocks = tail.drawn, len(tail.blocks)
        done, before = self.shown.sent.get(message, (0, -1))
        if drawn != before:
            self.shown.sent[message] = (blocks, drawn)
            await self._send(fragments.growing(message, tail.blocks[done:blocks], tail.tail))

    async def _act(self, frame: str) -> str:
        """Do what the page asks for, and return what it is told."""
        try:
            return await in_db(commands.act)(self.scope["session"], self.conversation_id, commands.parse(frame))
        except commands.BadFrame as error:
            return fragments.flash(str(error))
        except Exception as error:
            logger.exception("A command of conversation %s failed", self.conversation_id)
            why = database.SENTENCES.get(database.trouble(error), gettext_noop("Something went wrong on the server."))
            return fragments.flash(_(why) + " " + _("Reload the page to see what was stored."))

    def _viewer(self) -> Actor:
        """Return the person as their session is stored now: they may have signed in again since the page was opened."""
        return actor_in(sign_in.stored(self.scope["session"].session_key), self.scope["user"])

    async def _send(self, html: str) -> None:
        for frame in fragments.frames(html) if html else ():
            await self.send(frame)


def doorkeeper() -> Worker:
    """Closes pages on which nothing happens, too: events may be lost, and other programs write to the database."""
    return Worker("open pages", _check_all, CHECK_SECONDS, longest=CHECK_SECONDS)


async def _check_all() -> None:
    pages, began = [*ConversationConsumer.pages], time.monotonic()
    gone = set(await for_page(sign_in.ended)([each.session for each in pages]))
    for each in pages:
        if each.session in gone:
            # By itself: one whose connection is gone keeps no other open.
            background.spawn(each.leave)
        else:
            each.checked_at = began


def on_progress(*, call_id: UUID, conversation_id: UUID | None, step: "Step", **_: Any) -> None:
    """Pass on the progress of a call to the pages of its conversation."""
    if conversation_id is not None:
        progress = {"done": step.progress, "total": step.total, "message": step.message[:LONGEST_STEP]}
        tell_soon(conversation_id, "progress", call=str(call_id), **progress)


def on_question(*, call_id: UUID, conversation_id: UUID | None, turn_id: UUID | None, **_: Any) -> None:
    if conversation_id is not None:
        tell_soon(conversation_id, "question", call=str(call_id), turn=str(turn_id))


def on_grant(*, conversation_id: UUID | None, **_: Any) -> None:
    if conversation_id is not None:
        tell_soon(conversation_id, "grants")


class OwnOriginOnly:
    """Checks the Origin of a websocket, which stands for a CSRF token (SR-24), with its port, as a browser sends our
    cookies to every port of a host. Origins that may post forms (CSRF_TRUSTED_ORIGINS) may open one too.
    """

    def __init__(self, application: Asgi) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        origin, host = (headers.get(name, b"").decode("latin-1").lower() for name in (b"origin", b"host"))
        if origin.partition("://")[2] == host or origin in settings.CSRF_TRUSTED_ORIGINS:
            await self._application(scope, receive, send)
        else:
            await WebsocketDenier()(scope, receive, send)


websocket_urlpatterns = [path("ws/conversations/<uuid:conversation_id>", ConversationConsumer.as_asgi())]
