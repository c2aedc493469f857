"""The handler of requests: each is answered in one thread, lent for it, that keeps its database connection.

Django's own handler crosses to a thread and back at each middleware, and begins that thread, with a connection that
has to be set up and to read the schema, for each request: that costs more than most answers.
"""

import asyncio
import concurrent.futures
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final

import django
from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.db import connections
from django.urls import set_script_prefix

from hitlchat.base.event_stream import EventStream

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

# So many wait for the next request, each with its connection; more of them are begun for a rush, and end with it.
MOST_FREE: Final = 8
# How long the end of the server waits for requests that are about to be over.
PATIENCE_SECONDS: Final = 5.0

logger = logging.getLogger(__name__)


class Threads:
    """Threads that are lent, each to one request at a time. Of executors, as asgiref speaks of them: each has one."""

    def __init__(self) -> None:
        self._free: list[ThreadPoolExecutor] = []
        self._ended: dict[ThreadPoolExecutor, Future[None]] = {}
        self._is_closing = False

    @property
    def busy(self) -> int:
        """Return how many are lent, or are about to be free again."""
        return len(self._ended) - len(self._free)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[ExitStack]:
        """Run all thread-sensitive code of the block in one of these; at its end, in the same, the callbacks pushed."""
        last = ExitStack()
        try:
            # The one that came back last: in quiet times it is always the same.
            thread = self._free.pop()
        except IndexError:
            thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="request")
            self._ended[thread] = Future()
        try:
            async with ThreadSensitiveContext(executor=thread):
                yield last
        finally:
            # Behind a view that still runs there: it goes on to its end though its browser is gone.
            thread.submit(self._give_back, thread, last).add_done_callback(_complain)

    async def close(self) -> None:
        """End all that are free, and those that come back meanwhile."""
        self._is_closing = True
        while self._free:
            thread = self._free.pop()
            thread.submit(self._end, thread)
        await asyncio.to_thread(concurrent.futures.wait, [*self._ended.values()], PATIENCE_SECONDS)
        self._is_closing = False

    def _give_back(self, thread: ThreadPoolExecutor, last: ExitStack) -> None:
        """Runs in the thread itself, as only that reaches its connection."""
        is_clean = False
        try:
            last.close()
            is_clean = not any(each.in_atomic_block for each in connections.all(initialized_only=True))
        finally:
            if is_clean and not self._is_closing and len(self._free) < MOST_FREE:
                self._free.append(thread)
            else:
                self._end(thread)

    def _end(self, thread: ThreadPoolExecutor) -> None:
        try:
            connections.close_all()
        finally:
            thread.shutdown(wait=False)
            self._ended.pop(thread).set_result(None)


def _complain(over: Future[None]) -> None:
    if (error := over.exception()) is not None:
        logger.error("The work after a request failed", exc_info=error)


threads = Threads()


class Handler(ASGIHandler):
    """Django's handler, but for where it works: an answer that is no stream takes one crossing to a thread."""

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002 - as Django has it
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # First of all the body, however slowly it comes: no thread waits for that.
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        await _first(self._answer(scope, body, send), self.listen_for_disconnect(receive))

    async def _answer(self, scope: Scope, body: Any, send: Send) -> None:
        async with threads.lend() as last:
            last.callback(body.close)
            response = await sync_to_async(self._respond)(scope, body, last)
            if response.streaming and not isinstance(response, EventStream):
                await self.send_response(response, _apart(send))
                return
        # A stream of events goes on for as long as somebody listens: without a thread of its own, as websockets do.
        await self.send_response(response, send)

    def _respond(self, scope: Scope, body: Any, last: ExitStack) -> Any:
        """Make the answer and, unless it is streamed later, close it."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=type(self), scope=scope)
        last.callback(signals.request_finished.send, sender=type(self))
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else self.get_response(request)
        # The signal follows the end of the answer itself.
        last.pop_all()
        last.callback(body.close)
        # Of SQLite Django takes every connection for usable.
        if any(each.errors_occurred for each in connections.all(initialized_only=True)):
            last.callback(connections.close_all)
        response._handler_class = type(self)  # noqa: SLF001 - as Django does
        if response.streaming and response.is_async:
            last.callback(response.close)
            return response
        if response.streaming:
            response.streaming_content = _at_once([*response.streaming_content])
        response.close()
        return response


def _apart(send: Send) -> Send:
    """Return `send` without the thread: the server may begin to read the next request of the connection as it sends."""

    async def sent(event: Any) -> None:
        lent = SyncToAsync.thread_sensitive_context.set(None)  # type: ignore[arg-type]
        try:
            await send(event)
        finally:
            SyncToAsync.thread_sensitive_context.reset(lent)

    return sent


async def _at_once(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def _first(answering: Coroutine[Any, Any, None], leaving: Coroutine[Any, Any, None]) -> None:
    """Answer until that is done or the client leaves; end both."""
    tasks = [asyncio.create_task(each) for each in (answering, leaving)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, RequestAborted):
            raise error


def get_application() -> Handler:
    django.setup(set_prefix=False)
    return Handler()
