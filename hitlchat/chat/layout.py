"""Answers laid out in a thread of their own, so that no text holds up the event loop or the thread of the database.

A finished one is laid out once: its HTML is kept in memory, up to so many bytes. Those of a page have a budget of time
between them, from the newest on. Beyond it they are plain text on this page, and laid out for the next.
"""

import asyncio
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Final, ParamSpec, TypeVar

from django.utils.safestring import SafeString
from django.utils.translation import get_language

from hitlchat.agent.models import Message, Role
from hitlchat.base.database import for_page
from hitlchat.chat import markdown
from hitlchat.chat.markdown import OpenTail
from hitlchat.chat.transcript_view import MessageView

# Of the processor's time. A long answer of prose takes a twentieth of a second.
PAGE_SECONDS: Final = 3.0
MOST_KEPT: Final = 32 * 2**20
# Of answers that are being written so many are kept, and one that is far behind goes on by so many characters.
MOST_GROWING: Final = 200
STEP: Final = 10_000

P = ParamSpec("P")
T = TypeVar("T")
_thread: Final = ThreadPoolExecutor(1, thread_name_prefix="layout")
_growing: Final = OrderedDict[str, OpenTail]()


class HtmlCache:
    """HTML by what it was made of; what was not used for longest goes first. Of the one thread that lays out."""

    def __init__(self) -> None:
        self._found: OrderedDict[bytes, SafeString] = OrderedDict()
        self._bytes = 0

    def get(self, key: bytes) -> SafeString | None:
        if (found := self._found.get(key)) is not None:
            self._found.move_to_end(key)
        return found

    def put(self, key: bytes, html: SafeString) -> None:
        self._found[key] = html
        self._bytes += sys.getsizeof(html)
        while self._bytes > MOST_KEPT:
            self._bytes -= sys.getsizeof(self._found.popitem(last=False)[1])


_cache: Final = HtmlCache()


def lay_out(views: Sequence[MessageView]) -> list[MessageView]:
    """Return the messages of a page with their HTML; for threads that may wait."""
    left, done = PAGE_SECONDS, list(views)
    for index in _newest_first(views):
        html, seconds = _begun(_html, done[index].message, left).result()
        done[index], left = replace(done[index], html=html), left - seconds
    return done


async def laid_out(views: Sequence[MessageView]) -> list[MessageView]:
    """Return the same from the event loop. One by one, so that others get their turn in between."""
    left, done = PAGE_SECONDS, list(views)
    for index in _newest_first(views):
        html, seconds = await _apart(_html, done[index].message, left)
        done[index], left = replace(done[index], html=html), left - seconds
    return done


async def follow(message_id: str, base: int, text: str) -> OpenTail | None:
    """Bring an answer that is being written up to `text`, which begins at character `base`.

    Returns None if what precedes it is not stored yet.
    """
    if await _apart(_tail(message_id).reach, base, text):
        return _tail(message_id)
    tail = await catch_up(message_id)
    return tail if await _apart(tail.reach, base, text) else None


async def catch_up(message_id: str) -> OpenTail:
    """Return the answer as far as this process knows it or it is stored, for a page that has just come."""
    row = await for_page(Message.objects.filter(pk=message_id).first)()
    stored, tail = row.content if row else "", _tail(message_id)
    # In steps, so that others get their turn in between.
    for start in range(0, len(stored), STEP):
        await _apart(tail.reach, start, stored[start : start + STEP])
    return tail


def is_written(view: MessageView) -> bool:
    """Return whether there is something to lay out: what a model wrote, and has finished."""
    row = view.message
    return row.role in (Role.ASSISTANT, Role.SUMMARY) and bool(row.content) and not view.streaming


def forget(message_id: str) -> None:
    _growing.pop(message_id, None)


async def _apart(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` in the thread that lays out, in the language of this one."""
    return await asyncio.wrap_future(_begun(function, *args, **kwargs))


def _begun(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
    return _thread.submit(copy_context().run, partial(function, *args, **kwargs))


def _tail(message_id: str) -> OpenTail:
    if message_id not in _growing:
        _growing[message_id] = OpenTail()
        if len(_growing) > MOST_GROWING:
            _growing.popitem(last=False)
    return _growing[message_id]


def _newest_first(views: Sequence[MessageView]) -> list[int]:
    return [at for at, view in reversed([*enumerate(views)]) if is_written(view)]


def _html(message: Message, left: float) -> tuple[SafeString, float]:
    """Return the HTML of a message, plain where no time is `left` for the page, and the seconds that it took."""
    text, place = message.content, f"m-{message.pk}"
    key = sha256(f"{place} {get_language()} {text}".encode("utf-8", "surrogatepass")).digest()
    if (found := _cache.get(key)) is not None:
        return found, 0
    if left <= 0:
        return markdown.plain(text), 0
    began = time.thread_time()
    html = markdown.render(text, place=place)
    _cache.put(key, html)
    return html, time.thread_time() - began
