"""One request on its way, as the transports see it: whether it was sent, and what went wrong beneath the SDK.

The SDK runs what belongs to a request in the context of whoever made it, so the transports find it in `CURRENT`.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

from pydantic import ValidationError

from hitlchat.upstreams.client.elicitation import OnDeclined, OnQuestion, Question, Reply, unasked
from hitlchat.upstreams.client.results import NeverRan, Trouble, Unknown

LONGEST = 500


def short(text: str, limit: int = LONGEST) -> str:
    """Return a text on one line, at most `limit` characters, without what a terminal or a page would obey."""
    line = "".join(map(_seen, " ".join(text[: 4 * limit].split())))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def told(text: str, hide: Callable[[str], str], limit: int = LONGEST) -> str:
    """`short`, of what `hide` leaves. In this order: of a secret that was cut, the first half would not be known."""
    read = text[: 8 * limit]
    return short(hide(read if len(read) == len(text) else f"{read}… ({len(text) - len(read)} more)"), limit)


def _seen(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


def where(error: ValidationError) -> str:
    """The first thing that does not fit, without what stood there."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return short(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 200)


logger = logging.getLogger(__name__)

MOST_QUESTIONS = 10
TAKE_BACK_SECONDS = 2.0
# With these a request is refused before anyone looks at what it asks for.
UNREAD = frozenset({400, 401, 403, 404, 405, 406, 411, 413, 415, 421, 426, 429, 431})


class Exchange:
    """A request of one loop. The first trouble counts; the time in which a question waits does not.

    `is_call`: it is the call of a tool, to which a question of the server may belong.
    """

    def __init__(
        self,
        seconds: float,
        *,
        is_call: bool = False,
        on_question: OnQuestion | None = None,
        question_seconds: float = 300.0,
        on_declined: OnDeclined | None = None,
    ) -> None:
        self.is_call = is_call
        self.sent = False
        self.posts = 0
        self.http_status: int | None = None
        self.trouble: asyncio.Future[Trouble] = asyncio.get_running_loop().create_future()
        self._on_question, self._question_seconds = on_question, question_seconds
        self._on_declined = on_declined
        self._left, self._running_since = seconds, time.monotonic()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asking = asyncio.Lock()
        self._waiting = self._asked = 0

    def fail(self, trouble: Trouble) -> None:
        if not self.trouble.done():
            self.trouble.set_result(trouble)

    def lose(self, reason: str, *, retry: bool = False) -> None:
        """The connection is gone: what that means depends on whether the request was sent."""
        if self.sent:
            self.fail(Unknown(f"{reason}, after the request was sent"))
        else:
            self.fail(NeverRan(reason, self.http_status, retry=retry))

    def turned_away(self, http_status: int) -> None:
        """A response came over HTTP; some of those that refuse prove that nothing was done."""
        self.http_status = http_status
        if http_status in UNREAD:
            if self.posts == 1:
                self.sent = False
            # It may be repeated with another token, and is the first again.
            self.posts -= 1

    def seconds_left(self) -> float | None:
        """None while a question waits for its answer."""
        return None if self._waiting else self._left - (time.monotonic() - self._running_since)

    def close(self) -> None:
        """Nobody waits any more, so a question that is still open is taken back."""
        self._over.cancel()
        self.trouble.cancel()

    def has_declined(self, why: str) -> None:
        if self._on_declined is not None:
            self._on_declined(why)

    async def ask(self, question: Question) -> Reply:
        """Return one question at a time.

        Declined when nobody is there to answer it, cancelled when nobody does in time.
        """
        self._asked += 1
        if self._asked > MOST_QUESTIONS:
            self.has_declined(f"it is more than the {MOST_QUESTIONS} that a call may ask")
        if self._on_question is None or self._asked > MOST_QUESTIONS or self._over.done():
            return unasked()
        if not self._waiting:
            self._left -= time.monotonic() - self._running_since
        self._waiting += 1
        try:
            async with self._asking:
                return await self._answered(self._on_question(question))
        finally:
            self._waiting -= 1
            self._running_since = time.monotonic()

    async def _answered(self, asking: Coroutine[Any, Any, Reply]) -> Reply:
        working = asyncio.create_task(asking)
        events: set[asyncio.Future[Any]] = {working, self._over}
        try:
            await asyncio.wait(events, timeout=self._question_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            working.cancel()
            await asyncio.wait({working}, timeout=TAKE_BACK_SECONDS)
        if not working.done() or working.cancelled():
            return Reply("cancel")
        if failure := working.exception():
            # The server is not told what is wrong with us.
            logger.error("a question could not be asked", exc_info=failure)
            return Reply("cancel")
        return working.result()


CURRENT: ContextVar[Exchange | None] = ContextVar("upstream_exchange", default=None)
