"""Requests over an open connection: one call of a tool, with its progress, and whether the server refuses anything."""

import asyncio
import json
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import TypeAdapter, ValidationError

from hitlchat.upstreams.client.link import (
    CURRENT,
    MOST_ABANDONED,
    UNREAD,
    Exchange,
    Link,
    OnProgress,
    Step,
    ToolCall,
    ask,
    masked_line,
    where,
)
from hitlchat.upstreams.client.results import NeverRan, Outcome, Rejected, Tidied, Unknown, Unreadable

MOST_ROUNDS = 10
# An answer may have come in the same moment as the trouble.
LAST_CHANCE_SECONDS = 0.1
WAIT_SECONDS = 0.25
LONGEST_MESSAGE = 2000
# The SDK's message for an HTTP status without a message of the protocol.
_OF_THE_SDK = frozenset({"Server returned an error response", "Not Found", "Session terminated"})
_ANSWERED = 200
# These refuse the request itself or its rate, not its session.
_OF_THE_REQUEST = frozenset({408, 411, 413, 414, 415, 429, 431})
# These alone do not prove that the request was not read.
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


def too_large(arguments: dict[str, Any], most: int) -> str:
    """Return why the arguments cannot be sent; empty if they can."""
    try:
        size = len(json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError):
        return "the arguments cannot be expressed in JSON"
    return f"the arguments take {size:,} bytes; at most {most:,} may be sent" if size > most else ""


class _NoAnswer(Exception):
    """The server requested input that it does not get; with the code and the message of an error."""


@dataclass(frozen=True)
class Refusal:
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
        """Return whether it may mean that the server does not know the session, whatever its wording."""
        if self.is_of_http:
            return self.http_status < 500 and self.http_status not in _OF_THE_REQUEST
        if self.http_status != _ANSWERED:
            return False
        is_of_the_protocol = self.code == types.INVALID_REQUEST or self.code in _OF_SERVERS
        return is_of_the_protocol or _SESSION.search(self.message) is not None

    @property
    def came_before_the_tool(self) -> bool:
        """Return whether the tool cannot have run, provided that the server refuses other requests in the same way."""
        if self.is_of_http:
            return self.http_status in UNREAD | _ODDLY_UNREAD
        is_unread = self.code == types.INVALID_REQUEST or _SESSION.search(self.message) is not None
        # A session that ended may have ended in the middle of the call.
        return is_unread and _ENDED.search(self.message) is None

    def is_like(self, other: Self) -> bool:
        if self.is_of_http:
            return (self.http_status, self.code) == (other.http_status, other.code)
        return not other.is_of_http and (self.code, self.message) == (other.code, other.message)

    def in_words(self, hide: Callable[[str], str]) -> str:
        if self.message in _OF_THE_SDK:
            return f"the server answered {self.http_status}"
        return masked_line(self.message, hide)


async def attempt(link: Link, call: ToolCall) -> Outcome:
    """Make the call over this connection, once. The connection is given up if the server likewise refuses to list its
    tools; the call may be made again if the refusal came before the tool.
    """
    if link.dropped.is_set():
        return NeverRan(link.reason, retry=True)
    outcome, refused = await _attempted(link, call)
    if refused is None or not refused.may_be_of_the_session:
        if refused is not None and refused.is_of_http:
            link.doubted.set()
        return outcome
    try:
        also = await _refusal_to(link.session.list_tools(), link)
    except (TimeoutError, RuntimeError):
        also = None
    if also is not None and refused.is_like(also):
        link.retire(f"{REFUSED}: {refused.in_words(link.hide)}")
    if not link.reason or not refused.came_before_the_tool:
        return outcome
    return NeverRan(link.reason, refused.http_status if refused.is_of_http else None, retry=True)


async def refusal(link: Link) -> str:
    """Return how the server refuses a harmless request; empty if it answers. Raises: as `within`"""
    session = link.session
    probe = session.send_discover(LATEST_MODERN_VERSION) if link.is_modern else session.send_ping()
    refused = await _refusal_to(probe, link)
    if refused is not None and not refused.is_of_http and refused.code != types.CONNECTION_CLOSED:
        # Some servers do not know this request, and report that in their own way.
        refused = await _refusal_to(session.list_tools(), link)
    return refused.in_words(link.hide) if refused is not None else ""


async def _refusal_to(request: Coroutine[Any, Any, Any], link: Link) -> Refusal | None:
    exchange = Exchange(link.spec.timeouts.health)
    try:
        await within(request, link, exchange)
    except ValidationError:
        return None
    except MCPError as error:
        is_answer = error.code == types.METHOD_NOT_FOUND and error.message not in _OF_THE_SDK
        return None if is_answer else Refusal.of(error, exchange)
    return None


@asynccontextmanager
async def _sending(
    request: Coroutine[Any, Any, Result], link: Link, exchange: Exchange
) -> AsyncIterator["asyncio.Task[Result]"]:
    """Run a request in a context of its own, until it is over or nobody waits for it any more."""
    context = copy_context()
    context.run(CURRENT.set, exchange)
    link.open.add(exchange)
    working = asyncio.create_task(request, context=context)
    try:
        yield working
    finally:
        await _give_up(working)
        link.forget(exchange)
        if exchange.call and exchange.sent and working.cancelled() and not link.forgets:
            link.abandoned += 1
        exchange.close()
        if link.abandoned >= MOST_ABANDONED and not link.open:
            # A late answer to one of so many calls could be taken for the answer to another.
            link.drop(f"{link.abandoned} calls were never answered")


async def within(request: Coroutine[Any, Any, Result], link: Link, exchange: Exchange) -> Result:
    """Make a request other than a call. Raises: TimeoutError; RuntimeError, with the trouble; the request's errors"""
    async with _sending(request, link, exchange) as working:
        await _until_settled(working, exchange)
        if exchange.trouble.done():
            raise RuntimeError(exchange.trouble.result().reason)
        if not working.done():
            raise TimeoutError
        return working.result()


async def _give_up(working: "asyncio.Task[Any]") -> None:
    """Cancel a request, a second time if the SDK hangs while it tells the server."""
    for _ in range(2):
        if not working.done():
            working.cancel()
            await asyncio.wait({working}, timeout=1.0)
    if working.done() and not working.cancelled():
        # Retrieved, so that asyncio does not log it as lost; the outcome does not depend on it.
        working.exception()


async def _attempted(link: Link, call: ToolCall) -> tuple[Outcome, Refusal | None]:
    """Make the call. Return its outcome, and the server's refusal unless the tool may have begun."""
    tidied = Tidied(link.protocol_version, link.spec.limits)
    exchange = Exchange(call.seconds or link.spec.timeouts.call, call, tidied.tidy)
    async with _sending(_rounds(link, call), link, exchange) as working:
        why = await _until_settled(working, exchange)
        outcome = await _outcome(link, working, exchange, tidied, why)
        error = working.exception() if working.done() and not working.cancelled() else None
        # An answer that cannot be read is still an answer, not a refusal.
        may_have_begun = exchange.trouble.done() or exchange.has_begun or isinstance(outcome, Unreadable)
        if isinstance(error, MCPError) and not may_have_begun:
            return outcome, Refusal.of(error, exchange)
        return outcome, None


async def _until_settled(working: "asyncio.Task[Result]", exchange: Exchange) -> str:
    """Wait for an answer, trouble, a cancellation, or the end of the time. Return which of the last two it was."""
    cancelled = asyncio.create_task((exchange.call.cancel if exchange.call else asyncio.Event()).wait())
    events: set[asyncio.Future[Any]] = {working, exchange.trouble, cancelled}
    try:
        while (left := exchange.seconds_left()) is None or left > 0:
            wait_for = WAIT_SECONDS if left is None else left
            done, _ = await asyncio.wait(events, timeout=wait_for, return_when=asyncio.FIRST_COMPLETED)
            if working in done or exchange.trouble in done:
                return ""
            if done:
                return "the call was cancelled"
        return "no answer came in time"
    finally:
        cancelled.cancel()


async def _outcome(
    link: Link, working: "asyncio.Task[types.CallToolResult]", exchange: Exchange, tidied: Tidied, why: str
) -> Outcome:
    if not working.done() and not why:
        await asyncio.wait({working}, timeout=LAST_CHANCE_SECONDS)
    await _give_up(working)
    if not working.cancelled() and working.done():
        return await _ended(link, working, exchange, tidied)
    if exchange.trouble.done():
        return exchange.trouble.result()
    if exchange.sent:
        return Unknown(f"{why} after the request was sent")
    return NeverRan(f"{why} before the request was sent")


async def _ended(
    link: Link, working: "asyncio.Task[types.CallToolResult]", exchange: Exchange, tidied: Tidied
) -> Outcome:
    hide = link.hide
    try:
        return await tidied.answer(working.result(), link.mask)
    except MCPError as error:
        if exchange.trouble.done():
            return exchange.trouble.result()
        return _refused(error.code, masked_line(error.message, hide, LONGEST_MESSAGE), exchange)
    except ValidationError as error:
        return Unreadable(hide(f"the answer breaks the protocol: {where(error)}"))
    except _NoAnswer as error:
        return Rejected(*error.args)
    except Exception as error:
        logger.exception("a call to %s ended in an unforeseen way", link.spec.name)
        return Unknown(f"{type(error).__name__}")


def _refused(code: int, message: str, exchange: Exchange) -> Outcome:
    """Return the outcome for an error of the SDK, which may be the server's own or stand for a missing answer."""
    status = exchange.http_status or 200
    if code == types.CONNECTION_CLOSED:
        return Unknown(message) if exchange.sent else NeverRan(message, retry=True)
    if code == types.PARSE_ERROR and message.startswith("Failed to parse"):
        return Unreadable("the answer is not an MCP message")
    if message.startswith("Unexpected content type"):
        return Unreadable("the answer is not an MCP message: neither JSON nor an event stream")
    if message.endswith("202 Accepted") and status == 202:
        return Unknown("the server accepted the request but will not answer it")
    if 300 <= status < 400:
        return NeverRan(f"the server redirects: {message}", status)
    if message in _OF_THE_SDK and status >= 400:
        answered = f"the server answered {status}"
        return NeverRan(answered, status) if status in UNREAD and not exchange.sent else Unknown(answered)
    return Rejected(code, message)


async def _rounds(link: Link, call: ToolCall) -> types.CallToolResult:
    """Send the call, and answer the server's requests for input, until it returns a result."""
    responses: types.InputResponses = {}
    state: str | None = None
    async with _progress(call.on_progress, link.hide) as progress:
        for number in range(MOST_ROUNDS + 1):
            if number and (exchange := CURRENT.get()):
                exchange.has_begun = True
            params = types.CallToolRequestParams(
                name=call.name, arguments=call.arguments, input_responses=responses or None, request_state=state
            )
            result = await link.session.send_request(
                # Not `session.call_tool`: it validates the answer against the server's schema, however long that takes.
                types.CallToolRequest(params=params),
                _RESULT,
                request_read_timeout_seconds=None,
                progress_callback=progress,
            )
            if isinstance(result, types.CallToolResult):
                return result
            state, responses = result.request_state, {}
            for key, request in list((result.input_requests or {}).items())[:MOST_ROUNDS]:
                if not isinstance(request, types.ElicitRequest):
                    wanted = f"the server requested {request.method}, which is never granted"
                    raise _NoAnswer(types.MISSING_REQUIRED_CLIENT_CAPABILITY, wanted)
                responses[key] = await ask(link, request.params)
            if not responses:
                await asyncio.sleep(min(0.05 * 2**number, 1.0))
    raise _NoAnswer(types.INTERNAL_ERROR, f"the server asked for input more than {MOST_ROUNDS} times")


@asynccontextmanager
async def _progress(on_progress: OnProgress | None, hide: Callable[[str], str]) -> AsyncIterator[ProgressFnT | None]:
    """Pass on the newest step and skip older ones. `hide` masks secrets."""
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
            await asyncio.sleep(0.1)

    passing = asyncio.create_task(pass_on())
    try:
        yield take
    finally:
        passing.cancel()
        await asyncio.wait({passing})
        if not passing.cancelled() and (failure := passing.exception()):
            logger.error("passing progress on failed", exc_info=failure)
