"""Requests over an open connection: one call of a tool, with its progress, and the list of all tools, page by page."""

import asyncio
import json
import logging
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams, Tool
from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import TypeAdapter, ValidationError

from hitlchat.base.sentences import translatable
from hitlchat.upstreams.client.link import CURRENT, UNREAD, Exchange, OnDeclined, OnQuestion, ask, masked_line, where
from hitlchat.upstreams.client.opening import Live
from hitlchat.upstreams.client.results import (
    NeverRan,
    Outcome,
    Rejected,
    Tidied,
    Unknown,
    Unreadable,
    answer,
    complaint,
)

GIVE_UP_SECONDS = 1.0
PROGRESS_SECONDS = 0.1
MOST_ROUNDS = 10
# An answer may have come in the same moment as the trouble.
LAST_CHANCE_SECONDS = 0.1
WAIT_SECONDS = 0.25
LONGEST_MESSAGE = 2000
MOST_PAGES = 1000
# The SDK forgets no tool that it saw on one of several pages: after so many lists of other tools, it has to start anew.
MOST_LISTS = 4
MOST_NAMED = 5
# What the SDK says for an HTTP status without a message of the protocol.
_OF_THE_SDK = frozenset({"Server returned an error response", "Not Found", "Session terminated"})
_ANSWERED = 200
# Refused for what the request is, or how often one comes, and not for its session.
_OF_THE_REQUEST = frozenset({408, 411, 413, 414, 415, 429, 431})
# Not provably unread by themselves.
_ODDLY_UNREAD = frozenset({409, 419, 422, 440})
# The codes that servers give a meaning of their own.
_OF_SERVERS = range(-32099, -31999)
_SESSION = re.compile(r"session|initiali[sz]", re.IGNORECASE)
_ENDED = re.compile(r"terminat|clos|disconnect|lost|abort|cancel|time", re.IGNORECASE)
REFUSED = "the server refuses everything over this connection"

_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
Result = TypeVar("Result")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Step:
    """`total`: None if the server does not know. `message` is the server's word."""

    progress: float
    total: float | None = None
    message: str = ""


OnProgress = Callable[[Step], Awaitable[None]]


@dataclass(frozen=True)
class ToolCall:
    """`seconds`: how long it may take, None for what the server's spec says. Setting `cancel` gives it up. `check` is
    asked over every connection, right before the call is sent, and returns a reason not to, or nothing.
    """

    name: str
    arguments: dict[str, Any]
    seconds: float | None = None
    on_progress: OnProgress | None = None
    on_question: OnQuestion | None = None
    on_declined: OnDeclined = lambda _: None
    cancel: asyncio.Event | None = None
    check: Callable[[], Awaitable[str]] | None = None


def too_large(arguments: dict[str, Any], most: int) -> str:
    """Return why the arguments cannot be sent; empty if they can."""
    try:
        size = len(json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError):
        return "the arguments cannot be expressed in JSON"
    return f"the arguments take {size:,} bytes; at most {most:,} may be sent" if size > most else ""


class _TooManyRounds(Exception):
    """The server asked back again and again."""


class _NotOffered(Exception):
    """The server asked for something that no server gets; the message names it."""


@dataclass(frozen=True)
class _Refusal:
    """An error instead of a result: the server's own, or what the SDK made of an HTTP status."""

    code: int
    message: str
    http_status: int

    @classmethod
    def of(cls, error: MCPError, exchange: Exchange) -> Self:
        return cls(error.code, error.message, exchange.http_status or _ANSWERED)

    @property
    def is_of_http(self) -> bool:
        return self.http_status >= 400

    @property
    def may_be_of_the_session(self) -> bool:
        """Return whether it may say, in whatever words, that the server does not know the session."""
        if self.is_of_http:
            return self.http_status < 500 and self.http_status not in _OF_THE_REQUEST
        if self.http_status != _ANSWERED:
            return False
        is_of_the_protocol = self.code == types.INVALID_REQUEST or self.code in _OF_SERVERS
        return is_of_the_protocol or _SESSION.search(self.message) is not None

    @property
    def came_before_the_tool(self) -> bool:
        """Return whether nothing can have run, if the server refuses everything else likewise."""
        if self.is_of_http:
            return self.http_status in UNREAD | _ODDLY_UNREAD
        is_unread = self.code == types.INVALID_REQUEST or _SESSION.search(self.message) is not None
        # What ended may have ended in the middle of the call.
        return is_unread and _ENDED.search(self.message) is None

    def is_like(self, other: Self) -> bool:
        if self.is_of_http:
            return (self.http_status, self.code) == (other.http_status, other.code)
        return not other.is_of_http and (self.code, self.message) == (other.code, other.message)

    def in_words(self, hide: Callable[[str], str]) -> str:
        if self.message in _OF_THE_SDK:
            return f"the server answered {self.http_status}"
        return masked_line(self.message, hide)


async def attempt(live: Live, call: ToolCall) -> Outcome:
    """Make the call over this connection, once. Cancelled, it tells the server so.

    If the server refuses the call, and likewise to list its tools, the connection is at fault, and is given up. Over
    another one the call may be made again if the refusal came before the tool.
    """
    if live.link.dropped.is_set():
        return NeverRan(live.link.reason, retry=True)
    outcome, refused = await _attempted(live, call)
    if refused is None or not refused.may_be_of_the_session:
        if refused is not None and refused.is_of_http:
            live.link.doubted.set()
        return outcome
    try:
        also = await _refusal_to(live.session.list_tools(), live)
    except (TimeoutError, RuntimeError):
        also = None
    if also is not None and refused.is_like(also):
        live.link.retire(f"{REFUSED}: {refused.in_words(live.link.hide)}")
    if not live.link.reason or not refused.came_before_the_tool:
        return outcome
    return NeverRan(live.link.reason, refused.http_status if refused.is_of_http else None, retry=True)


async def refusal(live: Live) -> str:
    """Ask for nothing; return how the server refuses even that, in words, or nothing if it answers.

    Raises: TimeoutError; RuntimeError, the connection had trouble, and says which
    """
    session = live.session
    probe = session.send_discover(LATEST_MODERN_VERSION) if live.is_modern else session.send_ping()
    refused = await _refusal_to(probe, live)
    if refused is not None and not refused.is_of_http and refused.code != types.CONNECTION_CLOSED:
        # Some do not know this request, and say so in their own way.
        refused = await _refusal_to(session.list_tools(), live)
    return refused.in_words(live.link.hide) if refused is not None else ""


async def _refusal_to(request: Coroutine[Any, Any, Any], live: Live) -> _Refusal | None:
    exchange = Exchange(live.link.spec.timeouts.health)
    try:
        await _within(request, live, exchange)
    except ValidationError:
        return None
    except MCPError as error:
        is_answer = error.code == types.METHOD_NOT_FOUND and error.message not in _OF_THE_SDK
        return None if is_answer else _Refusal.of(error, exchange)
    return None


@asynccontextmanager
async def _sending(
    request: Coroutine[Any, Any, Result], live: Live, exchange: Exchange
) -> AsyncIterator["asyncio.Task[Result]"]:
    """Run a request in a context of its own, until it is over or nobody waits for it any more."""
    link, context = live.link, copy_context()
    context.run(CURRENT.set, exchange)
    link.open.add(exchange)
    working = asyncio.create_task(request, context=context)
    try:
        yield working
    finally:
        await _give_up(working)
        link.forget(exchange)
        if exchange.is_call and exchange.sent and working.cancelled() and not live.forgets:
            link.abandoned += 1
        exchange.close()
        link.renew_if_worn()


async def _within(request: Coroutine[Any, Any, Result], live: Live, exchange: Exchange) -> Result:
    """Return what the request returns or raises.

    Raises: TimeoutError; RuntimeError, the connection had trouble, and says which
    """
    async with _sending(request, live, exchange) as working:
        events: set[asyncio.Future[Any]] = {working, exchange.trouble}
        await asyncio.wait(events, timeout=exchange.seconds_left(), return_when=asyncio.FIRST_COMPLETED)
        if exchange.trouble.done():
            raise RuntimeError(exchange.trouble.result().reason)
        if not working.done():
            raise TimeoutError
        return working.result()


async def _give_up(working: "asyncio.Task[Any]") -> None:
    """Cancel it, a second time if the SDK does not succeed in telling the server so."""
    for _ in range(2):
        if not working.done():
            working.cancel()
            await asyncio.wait({working}, timeout=GIVE_UP_SECONDS)
    if working.done() and not working.cancelled():
        # Looked at, so that asyncio does not complain: what counts is known already.
        working.exception()


async def _attempted(live: Live, call: ToolCall) -> tuple[Outcome, _Refusal | None]:
    """Make the call; with how the server refused it, unless the tool may have begun."""
    spec = live.link.spec
    tidied = Tidied(live.protocol_version, spec.limits)
    exchange = Exchange(
        call.seconds or spec.timeouts.call,
        is_call=True,
        on_question=call.on_question,
        question_seconds=spec.timeouts.question,
        on_declined=call.on_declined,
        tidy=tidied.tidy,
    )
    cancelled = asyncio.create_task(call.cancel.wait()) if call.cancel else None
    try:
        async with _sending(_rounds(live, call), live, exchange) as working:
            why = await _until_settled(working, exchange, cancelled)
            outcome = await _outcome(live, working, exchange, tidied, why)
            error = working.exception() if working.done() and not working.cancelled() else None
            # An answer that cannot be read is one, and no refusal.
            may_have_begun = exchange.trouble.done() or exchange.has_begun or isinstance(outcome, Unreadable)
            if isinstance(error, MCPError) and not may_have_begun:
                return outcome, _Refusal.of(error, exchange)
            return outcome, None
    finally:
        if cancelled is not None:
            cancelled.cancel()


async def _until_settled(
    working: "asyncio.Task[types.CallToolResult]", exchange: Exchange, cancelled: "asyncio.Task[bool] | None"
) -> str:
    """Wait for an answer, trouble, a change of mind, or the end of its time; which of the last two it was."""
    events: set[asyncio.Future[Any]] = {working, exchange.trouble, *([cancelled] if cancelled else [])}
    while True:
        left = exchange.seconds_left()
        if left is not None and left <= 0:
            return "no answer came in time"
        done, _ = await asyncio.wait(
            events, timeout=WAIT_SECONDS if left is None else left, return_when=asyncio.FIRST_COMPLETED
        )
        if working in done or exchange.trouble in done:
            return ""
        if done:
            return "the call was cancelled"


async def _outcome(
    live: Live, working: "asyncio.Task[types.CallToolResult]", exchange: Exchange, tidied: Tidied, why: str
) -> Outcome:
    if not working.done() and not why:
        await asyncio.wait({working}, timeout=LAST_CHANCE_SECONDS)
    await _give_up(working)
    if not working.cancelled() and working.done():
        return await _ended(live, working, exchange, tidied)
    if exchange.trouble.done():
        return exchange.trouble.result()
    if exchange.sent:
        return Unknown(f"{why} after the request was sent")
    return NeverRan(f"{why} before the request was sent")


async def _ended(
    live: Live, working: "asyncio.Task[types.CallToolResult]", exchange: Exchange, tidied: Tidied
) -> Outcome:
    hide = live.link.hide
    try:
        return await answer(working.result(), live.link.mask, tidied)
    except MCPError as error:
        if exchange.trouble.done():
            return exchange.trouble.result()
        return _refused(error.code, masked_line(error.message, hide, LONGEST_MESSAGE), exchange)
    except ValidationError as error:
        return Unreadable(hide(f"the answer breaks the protocol: {where(error)}"))
    except _TooManyRounds:
        return Rejected(types.INTERNAL_ERROR, f"the server asked back more than {MOST_ROUNDS} times")
    except _NotOffered as error:
        return Rejected(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"the server wanted {error}, which no server gets")
    except Exception as error:
        logger.exception("a call of %s ended in a way that nobody foresaw", live.link.spec.name)
        return Unknown(f"{type(error).__name__}")


def _refused(code: int, message: str, exchange: Exchange) -> Outcome:
    """Return what the SDK made of an answer that may be the server's, or that it made up for want of one."""
    status = exchange.http_status or 200
    if code == types.CONNECTION_CLOSED:
        return Unknown(message) if exchange.sent else NeverRan(message, retry=True)
    if code == types.PARSE_ERROR and message.startswith("Failed to parse"):
        return Unreadable("the answer is no message of the protocol")
    if message.startswith("Unexpected content type"):
        return Unreadable("the answer is no message of the protocol: it is neither JSON nor a stream of events")
    if message.endswith("202 Accepted") and status == 202:
        return Unknown("the server took the request in and will not answer it")
    if 300 <= status < 400:
        return NeverRan(f"the server redirects: {message}", status)
    if message in _OF_THE_SDK and status >= 400:
        answered = f"the server answered {status}"
        return NeverRan(answered, status) if status in UNREAD and not exchange.sent else Unknown(answered)
    return Rejected(code, message)


async def _rounds(live: Live, call: ToolCall) -> types.CallToolResult:
    """Ask, and answer what the server asks back, until it has an answer."""
    responses: types.InputResponses | None = None
    state: str | None = None
    async with _progress(call.on_progress, live.link.hide) as progress:
        for number in range(MOST_ROUNDS + 1):
            if number and (exchange := CURRENT.get()):
                exchange.has_begun = True
            params = types.CallToolRequestParams(
                name=call.name, arguments=call.arguments, input_responses=responses, request_state=state
            )
            result = await live.session.send_request(
                # Not `session.call_tool`: that checks the answer against the server's own schema, whatever it takes.
                types.CallToolRequest(params=params),
                _RESULT,
                request_read_timeout_seconds=None,
                progress_callback=progress,
            )
            if isinstance(result, types.CallToolResult):
                return result
            state = result.request_state
            responses = await _responses(live, result)
            if responses is None:
                await asyncio.sleep(min(0.05 * 2**number, 1.0))
    raise _TooManyRounds


async def _responses(live: Live, result: types.InputRequiredResult) -> types.InputResponses | None:
    responses: types.InputResponses = {}
    for key, request in list((result.input_requests or {}).items())[:MOST_ROUNDS]:
        if not isinstance(request, types.ElicitRequest):
            raise _NotOffered(request.method)
        responses[key] = await ask(live.link, request.params)
    return responses or None


@asynccontextmanager
async def _progress(on_progress: OnProgress | None, hide: Callable[[str], str]) -> AsyncIterator[ProgressFnT | None]:
    """Pass the newest step on; older ones that nobody saw yet are left out. `hide`: takes secrets out."""
    if on_progress is None:
        yield None
        return
    newest, came = Step(0), asyncio.Event()

    async def take(progress: float, total: float | None, message: str | None) -> None:
        nonlocal newest
        if math.isfinite(progress):
            end = total if total is not None and math.isfinite(total) else None
            newest = Step(progress, end, masked_line(message or "", hide))
            came.set()

    async def pass_on() -> None:
        while await came.wait():
            came.clear()
            await on_progress(newest)
            await asyncio.sleep(PROGRESS_SECONDS)

    passing = asyncio.create_task(pass_on())
    try:
        yield take
    finally:
        passing.cancel()
        await asyncio.wait({passing})
        if not passing.cancelled() and (failure := passing.exception()):
            logger.error("passing progress on failed", exc_info=failure)


@dataclass(frozen=True)
class UpstreamTool:
    """One tool as its server describes it; all of it is the server's word. `definition`: the whole JSON object."""

    name: str
    definition: dict[str, Any]


@dataclass(frozen=True)
class Unread:
    """An entry of a list that cannot be read, and why not; without a name of its own it is called after its place."""

    name: str
    why: str


@dataclass(frozen=True)
class Listing:
    """The tools of a server, in its order.

    `cut`: why the list is incomplete, empty if it is whole; of a name that comes twice only the first
    is there, and `repeated` names it; `unread`: the entries that were left out.
    """

    tools: tuple[UpstreamTool, ...]
    cut: str = ""
    repeated: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()

    @property
    def trouble(self) -> str:
        """Return what is missing and why, in words; empty if nothing is."""
        missing = [self.cut] if self.cut else []
        if self.unread:
            entries = named(f"{each.name} ({each.why})" for each in self.unread)
            missing.append(translatable(f"entries that cannot be read: {entries}"))
        return "; ".join(missing)


def named(names: Iterable[str], longest: int = 120) -> str:
    """Return the first of these names, and how many more there are."""
    given = list(names)
    shown = ", ".join(ascii(name[:longest])[1:-1] for name in given[:MOST_NAMED])
    return f"{shown} and {len(given) - MOST_NAMED:,} more" if len(given) > MOST_NAMED else shown


class ListingFailed(Exception):
    """The list could not be read; in words for the administrator. `is_refusal`: over a new connection it might be."""

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal


async def listing(live: Live) -> Listing:
    """Read all pages; what comes of those after the first is told in `cut`.

    Raises: ListingFailed, not even the first can be read
    """
    reading = _Reading(live)
    exchange = Exchange(live.link.spec.timeouts.listing, tidy=reading.tidy)
    try:
        await _within(reading.read(), live, exchange)
    except (MCPError, RuntimeError, ValidationError, TimeoutError) as error:
        said = _why_unlisted(error, live)
        # Whether the server takes any request over this connection is another question, and asked soon.
        live.link.doubted.set()
        if not reading.pages or live.link.dropped.is_set():
            is_refusal = isinstance(error, MCPError) and _Refusal.of(error, exchange).may_be_of_the_session
            raise ListingFailed(said, is_refusal=is_refusal) from error
        reading.cut = translatable(f"the list is incomplete, since a later page could not be read: {said}")
    found = reading.listing()
    live.names.update(tool.name for tool in found.tools)
    if len(live.names) > MOST_LISTS * live.link.spec.limits.tools:
        live.link.retire("the server offers other tools all the time")
    return found


def _why_unlisted(error: Exception, live: Live) -> str:
    match error:
        case ValidationError():
            return live.link.hide(f"the list of tools breaks the protocol: {where(error)}")
        case TimeoutError():
            return f"the list of tools did not come within {live.link.spec.timeouts.listing:g} seconds"
        case _:
            return masked_line(str(error), live.link.hide)


class _Reading:
    """A list of tools as far as it was read: entries by themselves, page by page."""

    def __init__(self, live: Live) -> None:
        self._live, self._limits = live, live.link.spec.limits
        self._found: dict[str, UpstreamTool] = {}
        self._repeated: dict[str, None] = {}
        self._unread: dict[str, str] = {}
        self._size = self._entries = 0
        self._listed: list[str] = []
        self.pages, self.cut = 0, ""

    def listing(self) -> Listing:
        unread = tuple(Unread(name, why) for name, why in self._unread.items() if name not in self._found)
        return Listing(tuple(self._found.values()), self.cut, tuple(self._repeated), unread)

    async def read(self) -> None:
        cursor: str | None = None
        first: types.ListToolsResult | None = None
        seen = set[str]()
        for _ in range(MOST_PAGES):
            # An empty cursor is one like any other.
            params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
            page = await self._live.session.list_tools(params=params)
            if cursor == "" and first is not None and page.tools == first.tools:
                # The server took it for none, and began again: there is no more.
                return
            first = first or page
            self._take(page.tools)
            self.pages += 1
            cursor = page.next_cursor
            if self.cut or cursor is None:
                return
            if cursor in seen:
                self.cut = "the server's pages run in a circle"
                return
            seen.add(cursor)
        self.cut = f"the list has more than {MOST_PAGES:,} pages"

    def tidy(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a page, as it came, without what cannot be read; that is noted."""
        entries, cursor = result.get("tools"), result.get("nextCursor")
        if not isinstance(entries, list):
            return result
        if cursor is not None and not isinstance(cursor, str):
            self.cut = "what the server says of the next page cannot be read"
            result = {key: value for key, value in result.items() if key != "nextCursor"}
        readable = [entry for entry in entries if self._is_readable(entry)]
        self._listed = [entry["name"] for entry in readable]
        return {**result, "tools": readable}

    def _is_readable(self, entry: Any) -> bool:
        self._entries += 1
        why = _fault(entry, self._live)
        if why:
            name = entry.get("name") if isinstance(entry, dict) else None
            given = isinstance(name, str) and name.strip()
            self._leave_out(str(name) if given else f"entry {self._entries:,}", why)
        return not why

    def _leave_out(self, name: str, why: str) -> None:
        if len(self._unread) < self._limits.tools:
            self._unread.setdefault(self._live.link.hide(name), self._live.link.hide(why))

    def _take(self, tools: list[Tool]) -> None:
        offered = {tool.name for tool in tools}
        for name in self._listed:
            if name not in offered:
                # The SDK leaves it out, as the protocol has it.
                self._leave_out(name, "its x-mcp-header cannot be used")
        for tool in tools:
            # Without what is secret in it: a server may write down what it was given.
            definition = self._live.link.mask.value(tool.model_dump(by_alias=True, mode="json", exclude_unset=True))
            read = UpstreamTool(definition["name"], definition)
            if read.name in self._found:
                self._repeated[read.name] = None
                continue
            self._size += len(json.dumps(read.definition, ensure_ascii=False).encode(errors="replace"))
            if len(self._found) == self._limits.tools:
                self.cut = f"the server offers more than {self._limits.tools:,} tools"
                return
            if self._size > self._limits.listing_bytes:
                self.cut = f"the tools take more than {self._limits.listing_bytes:,} bytes"
                return
            self._found[read.name] = read


def _fault(entry: Any, live: Live) -> str:
    """Return why an entry of a list cannot be read; empty if it can."""
    if not isinstance(entry, dict):
        return "it is no object"
    if why := complaint(entry, live.link.spec.limits):
        return f"it {why}"
    page = {"tools": [entry], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    try:
        validate_server_result("tools/list", live.protocol_version, page)
        Tool.model_validate(entry, by_name=False)
    except ValidationError as error:
        return where(error).removeprefix("tools.0.")
    except (KeyError, ValueError):
        # Of a revision that is not known here the SDK checks as much itself.
        return ""
    return ""
