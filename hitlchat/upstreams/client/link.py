"""A connection's life: its requests, who waits on it, what its server asks and writes, and why it ended."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import httpx2
from django.utils.timezone import now
from mcp.client import Client, ClientSession
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult, RequestId
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from hitlchat.secrets.masking import Mask
from hitlchat.upstreams.client.results import NeverRan, Trouble, Unknown, Unreadable
from hitlchat.upstreams.client.spec import ServerSpec

MOST_QUESTIONS = 10
LARGEST_QUESTION = 64 * 1024
LONGEST_MESSAGE = 2000
LONGEST_LINE = 500
MOST_NOTES = 50
# After this many calls without an answer the connection is replaced.
MOST_ABANDONED = 16
# Statuses with which servers refuse a request without reading its body.
UNREAD = frozenset({400, 401, 403, 404, 405, 406, 410, 411, 412, 413, 415, 421, 426, 429, 431})

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question:
    """`server` asks for what `schema` describes (a flat JSON object), or to open `url`; all of it in its words."""

    server: str
    message: str
    schema: dict[str, Any] = field(default_factory=dict)
    url: str = ""


# The reply if nobody was asked. A decline is only sent when a person declined.
UNASKED: Final = ElicitResult(action="cancel")


@dataclass(frozen=True)
class Step:
    """`total`: None if the server does not know. `message`: from the server."""

    progress: float
    total: float | None = None
    message: str = ""


OnProgress = Callable[[Step], Awaitable[None]]


@dataclass(frozen=True)
class ToolCall:
    """`seconds`: how long it may take, None for what the server's spec says. `on_declined` gets the reason when a
    question was declined without anybody having been asked. Setting `cancel` gives the call up. `check` is asked over
    every connection, right before the call is sent, and returns a reason not to, or nothing.
    """

    name: str
    arguments: dict[str, Any]
    seconds: float | None = None
    on_progress: OnProgress | None = None
    on_question: Callable[[Question], Coroutine[Any, Any, ElicitResult]] | None = None
    on_declined: Callable[[str], None] = lambda _: None
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    check: Callable[[], Awaitable[str]] | None = None


class Exchange:
    """A request of one loop. The first trouble counts; the time in which a question waits does not. `call`: the call
    that it makes, if it is one; `has_begun`: a question came. `tidy` takes out of a result what cannot be read.
    """

    def __init__(
        self,
        seconds: float,
        call: ToolCall | None = None,
        tidy: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.call, self.tidy = call, tidy
        self.sent = self.has_begun = False
        self.posts = 0
        self.http_status: int | None = None
        self.trouble: asyncio.Future[Trouble] = asyncio.get_running_loop().create_future()
        self._left, self._running_since = seconds, time.monotonic()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asking = asyncio.Lock()
        self._waiting = self._questions = 0

    def fail(self, trouble: Trouble) -> None:
        if not self.trouble.done():
            self.trouble.set_result(trouble)

    def lose(self, reason: str, *, retry: bool = False) -> None:
        """Fail because the connection is lost: unknown if the request was sent, else it never ran."""
        if self.sent:
            self.fail(Unknown(f"{reason}, after the request was sent"))
        else:
            self.fail(NeverRan(reason, self.http_status, retry=retry))

    def turned_away(self, http_status: int) -> None:
        """Note the status of an HTTP response. Some refusals prove that the request was not processed."""
        self.http_status = http_status
        if http_status in UNREAD:
            if self.posts == 1:
                self.sent = False
            # It may be sent again with another token, as the first.
            self.posts -= 1

    def seconds_left(self) -> float | None:
        """Return the time left; None while a question waits for its answer."""
        return None if self._waiting else self._left - (time.monotonic() - self._running_since)

    def close(self) -> None:
        """Withdraw an open question: nobody waits for the request any more."""
        self._over.cancel()
        self.trouble.cancel()

    def declined(self, why: str) -> None:
        """Report a question that was declined without anybody having been asked."""
        if self.call is not None:
            self.call.on_declined(why)

    async def ask(self, question: Question, seconds: float) -> ElicitResult:
        """Return the reply, to one question at a time; `UNASKED` if nobody can be asked or answers in time."""
        self._questions, self.has_begun = self._questions + 1, True
        if self._questions > MOST_QUESTIONS:
            self.declined(f"it is more than the {MOST_QUESTIONS} that a call may ask")
            return UNASKED
        if self.call is None or self.call.on_question is None or self._over.done():
            return UNASKED
        if not self._waiting:
            self._left -= time.monotonic() - self._running_since
        self._waiting += 1
        try:
            async with self._asking:
                return await self._reply(self.call.on_question(question), seconds)
        finally:
            self._waiting -= 1
            self._running_since = time.monotonic()

    async def _reply(self, asking: Coroutine[Any, Any, ElicitResult], seconds: float) -> ElicitResult:
        working = asyncio.create_task(asking)
        events: set[asyncio.Future[Any]] = {working, self._over}
        try:
            await asyncio.wait(events, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            working.cancel()
            await asyncio.wait({working}, timeout=2.0)
        if not working.done() or working.cancelled():
            return UNASKED
        if failure := working.exception():
            # Our own errors are not the server's business.
            logger.error("a question could not be asked", exc_info=failure)
            return UNASKED
        return working.result()


CURRENT: ContextVar[Exchange | None] = ContextVar("upstream_exchange", default=None)


class Notes:
    """The newest last. A repeated note is listed once, with its last time and a count."""

    def __init__(self) -> None:
        self._notes: dict[str, tuple[datetime, int]] = {}

    def add(self, text: str) -> None:
        _, times = self._notes.pop(text, (None, 0))
        self._notes[text] = (now(), times + 1)
        if len(self._notes) > MOST_NOTES:
            del self._notes[next(iter(self._notes))]

    def lines(self) -> tuple[str, ...]:
        """Return each note, after its time in ISO 8601 and a space."""
        return tuple(
            f"{at:%Y-%m-%dT%H:%M:%SZ} {text}" + (f" ({times:,} times)" if times > 1 else "")
            for text, (at, times) in self._notes.items()
        )


class Link:
    """A connection of one loop, to its end. `tool_names`: all ever listed. `stop` gives up a handshake."""

    def __init__(
        self,
        spec: ServerSpec,
        mask: Callable[[], Mask],
        on_drop: Callable[["Link"], None] = lambda _: None,
        notes: Notes | None = None,
    ) -> None:
        self.spec, self._mask, self.notes = spec, mask, notes or Notes()
        self.dropped, self.changed, self.doubted = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.reason = ""
        self.stop: Callable[[], None] | None = None
        self.client: Client | None = None
        self.handshake_ms: float | None = None
        self.protocol_version = self.server_name = self.server_version = ""
        self.tool_names: set[str] = set()
        self.open: set[Exchange] = set()
        self.waiting: dict[RequestId, Exchange | None] = {}
        self.abandoned = 0
        self.http_status: int | None = None
        self._on_drop = on_drop
        self._retiring: asyncio.TimerHandle | None = None

    @property
    def mask(self) -> Mask:
        return self._mask()

    @property
    def session(self) -> ClientSession:
        assert self.client is not None
        return self.client.session

    @property
    def is_modern(self) -> bool:
        return self.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def forgets(self) -> bool:
        """Return whether no late answer can arrive: the stream of an abandoned request is closed with it."""
        return self.is_modern and self.spec.transport == "http"

    def drop(self, reason: str, last_words: str = "") -> None:
        """Give up the connection; requests not yet sent may use the next. `last_words`: of the server, on `reason`."""
        if self.dropped.is_set():
            return
        hidden = self.hide(reason)
        words = masked_line(last_words, self.hide, 200)
        self.reason = f"{hidden}: {words}" if words else hidden
        self.dropped.set()
        for exchange in self.open:
            exchange.lose(hidden, retry=True)
        if self.stop is not None:
            self.stop()
        if self._retiring is not None:
            self._retiring.cancel()
        self._on_drop(self)

    def retire(self, reason: str) -> None:
        """Take no more calls, and give up the connection once those under way are answered, or after two seconds."""
        if self._retiring is None and not self.dropped.is_set():
            self._retiring = asyncio.get_running_loop().call_later(2.0, self.drop, reason)
            self.reason = self.hide(reason)
            self._on_drop(self)
            self._drop_if_retired()

    def _drop_if_retired(self) -> None:
        if self._retiring is not None and not any(exchange.sent for exchange in self.open):
            self.drop(self.reason)

    def too_large(self, reason: str) -> None:
        """Fail the request whose answer was cut off; drop the connection if it is unclear which one that is."""
        exchange = CURRENT.get()
        if exchange not in self.open:
            exchange = self.only_call()
        if exchange is None:
            self.drop(reason)
        else:
            exchange.fail(Unreadable(reason))

    def is_waiting(self, request_id: RequestId | None) -> bool:
        return request_id is not None and coerce_request_id(request_id) in self.waiting

    def answered(self, request_id: RequestId | None) -> Exchange | None:
        return None if request_id is None else self.waiting.pop(coerce_request_id(request_id), None)

    def forget(self, exchange: Exchange) -> None:
        self.open.discard(exchange)
        self.waiting = {key: each for key, each in self.waiting.items() if each is not exchange}
        self._drop_if_retired()

    def is_calling(self) -> bool:
        return any(exchange.call for exchange in self.open)

    def only_call(self) -> Exchange | None:
        """Return the only call that an unaddressed message can belong to; None if that is uncertain."""
        calls = [exchange for exchange in self.open if exchange.call]
        return calls[0] if len(calls) == 1 and not self.abandoned else None

    def note(self, text: str) -> None:
        self.notes.add(masked_line(text, self.hide))

    def hide(self, text: str) -> str:
        return self.mask.text(text)


async def ask(link: Link, params: ElicitRequestParams) -> ElicitResult:
    """Return the reply to a question. Only one of a certain call is asked: others could reach the wrong person."""
    exchange = CURRENT.get()
    if exchange is None or exchange.call is None:
        # Over standard input and output a question does not name its call.
        exchange = link.only_call()
    if exchange is None:
        link.note("asked a question that belongs to no single call: declined")
        for each in link.open:
            each.declined("several calls were running, and nothing shows which one it belongs to")
        return UNASKED
    content: Any = params.url if isinstance(params, ElicitRequestURLParams) else dict(params.requested_schema)
    if len(json.dumps([params.message, content])) > LARGEST_QUESTION:
        exchange.declined(f"it is larger than the {LARGEST_QUESTION:,} bytes that a question may have")
        return UNASKED
    # Masking may break an address that contains a secret.
    part = {"url" if isinstance(content, str) else "schema": link.mask.value(content)}
    question = Question(link.spec.name, link.mask.text(params.message)[:LONGEST_MESSAGE], **part)
    return await exchange.ask(question, link.spec.timeouts.question)


def short(text: str, limit: int = LONGEST_LINE) -> str:
    """Return a text on one line, at most `limit` characters, with control characters escaped."""
    words = " ".join(text[: 4 * limit].split())
    line = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in words)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def masked_line(text: str, hide: Callable[[str], str], limit: int = LONGEST_LINE) -> str:
    """Return `short` of the masked text. Masked first, since half a secret would not be recognised."""
    read = text[: 8 * limit]
    return short(hide(read if len(read) == len(text) else f"{read}… ({len(text) - len(read)} more)"), limit)


def where(error: ValidationError) -> str:
    """Return the first problem, without the value itself."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return short(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 200)


def in_words(
    error: BaseException,
    hide: Callable[[str], str],
    about: str = "the server's answer",
    late: str = "the server did not answer in time",
) -> str:
    """Return an error in words; of a group, the first one. `hide` masks secrets."""
    match error:
        case BaseExceptionGroup():
            leaves = [each for each in error.exceptions if isinstance(each, Exception)] or error.exceptions
            return in_words(leaves[0], hide)
        case ValidationError():
            return hide(f"{about} breaks the protocol: {where(error)}")
        case TimeoutError():
            return late
        case httpx2.HTTPStatusError():
            return f"the server answered {error.response.status_code}"
        case _:
            return masked_line(str(error), hide) or type(error).__name__
