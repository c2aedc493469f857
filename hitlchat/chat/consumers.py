"""The websocket of a conversation page, and who may open it: HTML fragments out, commands in. It decides nothing."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

import django.db
from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.contrib.auth.models import User
from django.urls import path
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.accounts import preferences, sign_in
from hitlchat.accounts.sign_in import is_still_active, signed_in_user
from hitlchat.agent.models import Message
from hitlchat.agent.writing import group
from hitlchat.base import database
from hitlchat.base.database import in_db
from hitlchat.chat import commands, fragments, layout, transcript_view
from hitlchat.chat.markdown import OpenTail
from hitlchat.gate.actor import Actor, actor_in
from hitlchat.gate.status import SETTLED, STARTED, Status

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0

Leave = Callable[[], Awaitable[None]]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Presence:
    """Looks at everyone with an open page once a second, all in one go, and closes the pages of who may not stay."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: dict[int, set[Leave]] = {}
        self._watch: asyncio.Task[None] | None = None

    def enter(self, user_id: int, leave: Leave) -> None:
        """Have `leave` called once this person is deactivated."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._open, self._watch = loop, {}, None
        self._open.setdefault(user_id, set()).add(leave)
        if self._watch is None or self._watch.done():
            self._watch = loop.create_task(self._look(self._open))

    def exit(self, user_id: int, leave: Leave) -> None:
        leaves = self._open.get(user_id, set())
        leaves.discard(leave)
        if not leaves:
            self._open.pop(user_id, None)
        if not self._open and self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _look(self, everyone: dict[int, set[Leave]]) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not everyone:
                return
            try:
                gone = set(everyone) - await in_db(_active)(list(everyone))
            except django.db.Error:
                logger.exception("Looking for people who were deactivated failed; it is tried again")
                continue
            leaving = [leave() for user_id in gone for leave in everyone.pop(user_id, ())]
            for ended in await asyncio.gather(*leaving, return_exceptions=True):
                if isinstance(ended, Exception):
                    logger.error("A page of someone deactivated could not be closed", exc_info=ended)


def _active(user_ids: list[int]) -> set[int]:
    return set(User.objects.filter(pk__in=user_ids, is_active=True).values_list("pk", flat=True))


presence = Presence()


MOST = 200
STEP = 10_000

_open: OrderedDict[str, OpenTail] = OrderedDict()


async def follow(message_id: str, base: int, text: str) -> OpenTail | None:
    """Bring the answer up to `text`, which begins at character `base`; None if what precedes it is not stored yet."""
    tail = _open.get(message_id) or _remember(message_id)
    if await layout.apart(tail.reach, base, text):
        return tail
    tail = await catch_up(message_id)
    return tail if await layout.apart(tail.reach, base, text) else None


async def catch_up(message_id: str) -> OpenTail:
    """The answer as far as this process knows it or it is stored, for a page that has just come."""
    stored = await in_db(_stored)(message_id)
    tail = _open.get(message_id) or _remember(message_id)
    # In steps, so that others get their turn in between.
    for start in range(0, len(stored), STEP):
        await layout.apart(tail.reach, start, stored[start : start + STEP])
    return tail


def forget(message_id: str) -> None:
    _open.pop(message_id, None)


def _remember(message_id: str) -> OpenTail:
    _open[message_id] = tail = OpenTail()
    if len(_open) > MOST:
        _open.popitem(last=False)
    return tail


def _stored(message_id: str) -> str:
    return Message.objects.filter(pk=message_id).values_list("content", flat=True).first() or ""


def _actor(session_key: str, user: User) -> Actor:
    return actor_in(sign_in.stored(session_key), user)


# Accepted first and then closed with a code of our own: a refused handshake would be tried again for ever.
CLOSE_SIGNED_OUT = 4401
CLOSE_DEACTIVATED = 4403
CLOSE_NOT_FOUND = 4404
# How long a page may go on being told after its person has signed out.
CHECK_SECONDS = 5.0


class ConversationConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Draw all that a page is sent in the language of the browser that opened it."""
        with translation.override(preferences.of_socket(scope)):
            await super().__call__(scope, receive, send)

    async def dispatch(self, message: dict[str, Any]) -> None:
        if message["type"].startswith("conversation.") and not await self._still_signed_in():
            await self._leave()
            return
        # Without Channels' trip to the database thread before each event: streamed text needs no database.
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        await self.accept()
        self.conversation_id: UUID = self.scope["url_route"]["kwargs"]["conversation_id"]
        # What this page has: the messages it shows, those of them that are whole, and of one that is being written how
        # many finished blocks, and which state of the last one.
        self.known: set[str] = set()
        self.drawn: set[str] = set()
        self.sent: dict[str, tuple[int, int]] = {}
        self.executing: set[str] = set()
        user = self.scope["user"]
        if not user.is_authenticated:
            await self.close(CLOSE_SIGNED_OUT)
            return
        self.user_id: int = user.pk
        self.checked_at = time.monotonic()
        if not await in_db(commands.owns)(self.user_id, self.conversation_id):
            await self.close(CLOSE_NOT_FOUND)
            return
        presence.enter(self.user_id, self._shut)
        # Before the state is read, so that nothing can happen unseen in between.
        await self.channel_layer.group_add(group(self.conversation_id), self.channel_name)
        await self._show_everything()

    async def disconnect(self, _code: int) -> None:
        if hasattr(self, "user_id"):
            presence.exit(self.user_id, self._shut)
            await self.channel_layer.group_discard(group(self.conversation_id), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        if not hasattr(self, "user_id"):
            return
        try:
            command = commands.parse(text_data or "")
            html = await in_db(commands.act)(self.scope["session"], self.conversation_id, command)
        except commands.BadFrame as error:
            html = fragments.flash(str(error))
        except Exception as error:
            logger.exception("A command of conversation %s failed", self.conversation_id)
            known = database.SENTENCES.get(database.trouble(error), gettext_noop("Something went wrong on the server."))
            html = fragments.flash(_(known) + " " + _("Reload the page to see what was stored."))
        await self._send(html)

    async def conversation_message(self, event: dict[str, Any]) -> None:
        message = event["message"]
        self.sent.pop(message, None)
        forget(message)
        found = await in_db(transcript_view.message)(self.conversation_id, UUID(message))
        [view] = await layout.laid_out([found]) if found else [None]
        known = message in self.known
        self.known.add(message)
        html = await self._show(partial(fragments.message, known=known, laid_out=view), UUID(message))
        if f"m-{message}-tail" not in html:
            self.drawn.add(message)

    async def conversation_delta(self, event: dict[str, Any]) -> None:
        message = event["message"]
        if message in self.drawn or message not in self.known:
            # It came after the whole message, or before the page has a place for it.
            return
        await self._grow(message, await follow(message, event["base"], event["text"]))

    async def conversation_call(self, event: dict[str, Any]) -> None:
        if event["status"] not in STARTED:
            # By itself and before the rest, since people wait for it.
            await self._show(fragments.asks, await self._viewer())
            await self._show(fragments.run)
        if event["status"] == Status.EXECUTING:
            self.executing.add(event["call"])
        elif event["status"] in SETTLED:
            self.executing.discard(event["call"])
        # Before its message is drawn, a call's line has no place; it comes along with the message.
        if event["turn"] in self.drawn:
            await self._show(fragments.call, UUID(event["call"]))

    async def conversation_question(self, event: dict[str, Any]) -> None:
        await self._show(fragments.run)
        if event["turn"] in self.drawn:
            await self._show(fragments.call, UUID(event["call"]))

    async def conversation_progress(self, event: dict[str, Any]) -> None:
        # Elsewhere it has no place: steps may come later than the end.
        if event["call"] in self.executing:
            await self.send(fragments.progress(event["call"], event["done"], event["total"], event["message"]))

    async def conversation_grants(self, _event: dict[str, Any]) -> None:
        await self._show(fragments.grants)

    async def conversation_run(self, _event: dict[str, Any]) -> None:
        await self._show(fragments.run)

    async def conversation_queued(self, _event: dict[str, Any]) -> None:
        await self._show(fragments.queued)

    async def conversation_resync(self, _event: dict[str, Any]) -> None:
        await self._show_everything()

    async def conversation_gone(self, _event: dict[str, Any]) -> None:
        await self.close(CLOSE_NOT_FOUND)

    async def _still_signed_in(self) -> bool:
        """Asked again now and then: a socket outlives its session, and must not go on telling."""
        if time.monotonic() - self.checked_at > CHECK_SECONDS:
            self.checked_at = time.monotonic()
            return await in_db(signed_in_user)(self.scope["session"].session_key) is not None
        return True

    async def _shut(self) -> None:
        await self.close(CLOSE_DEACTIVATED)

    async def _leave(self) -> None:
        """The page says which of the two it was."""
        is_active = await in_db(is_still_active)(self.user_id)
        await self.close(CLOSE_SIGNED_OUT if is_active else CLOSE_DEACTIVATED)

    async def _show_everything(self) -> None:
        messages, earlier = await in_db(transcript_view.messages)(self.conversation_id)
        messages = await layout.laid_out(messages)
        viewer = await self._viewer()
        state = await in_db(fragments.everything)(self.conversation_id, viewer, (messages, earlier))
        self.known = state.shown
        self.drawn = state.shown - set(state.streaming)
        self.executing = state.executing
        self.sent.clear()
        await self._send(state.html)
        for message in state.streaming:
            await self._grow(message, await catch_up(message))

    async def _grow(self, message: str, tail: OpenTail | None) -> None:
        if tail is None:
            return
        # The thread that lays out may go on meanwhile.
        drawn, blocks = tail.drawn, len(tail.blocks)
        done, before = self.sent.get(message, (0, -1))
        if drawn != before:
            self.sent[message] = (blocks, drawn)
            await self._send(fragments.growing(message, tail.blocks[done:blocks], tail.tail))

    async def _viewer(self) -> Actor:
        """Return the person as their session is stored now: they may have signed in again since the page was opened."""
        return await in_db(_actor)(self.scope["session"].session_key, self.scope["user"])

    async def _show(self, render: Any, *arguments: Any) -> str:
        html: str = await in_db(render)(self.conversation_id, *arguments)
        await self._send(html)
        return html

    async def _send(self, html: str) -> None:
        for frame in fragments.frames(html) if html else ():
            await self.send(frame)


Asgi = Callable[[Any, Any, Any], Awaitable[None]]


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
