"""The connection to a server, opened again whenever it is lost; and a single test of one."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

import anyio
import httpx2
from django.utils.timezone import now
from mcp.client import Client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND

from hitlchat.upstreams.client.calls import REFUSED, attempt, refusal, too_large
from hitlchat.upstreams.client.http import masking
from hitlchat.upstreams.client.link import CURRENT, Exchange, Link, Notes, ToolCall, in_words
from hitlchat.upstreams.client.listing import Listing, ListingFailed, listing
from hitlchat.upstreams.client.opening import opened
from hitlchat.upstreams.client.results import NeverRan, Outcome
from hitlchat.upstreams.client.spec import ServerSpec
from hitlchat.upstreams.client.stdio import NotStarted

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0
# A connection that lasted this long was stable: after it, pauses start from the shortest again.
SETTLED_SECONDS = 10.0
# Time to end a program, beyond the `close` timeout.
ENDING_SECONDS = 8.0
# How long a server may take to confirm a subscription; also the first pause before subscribing again.
SUBSCRIBED_SECONDS = 1.0
# After each list, rest this many times as long as reading and recording it took, even if it changes all the time.
PAUSES_FOR_ONE = 10.0
LONGEST_REST_SECONDS = 300.0
# Errors of the SDK and the transports that are the server's fault; they also come in groups.
EXPECTED: Final = (MCPError, NotStarted, httpx2.HTTPError, OSError, RuntimeError, ValueError)

State = Literal["connecting", "up", "down"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Status:
    """`last_error` stays, secrets masked, until the server is up for good, and `latency_ms` is of the last exchange
    without work. `http_status`: 401 where the server wants someone to sign in.
    """

    state: State
    last_error: str = ""
    last_error_at: datetime | None = None
    http_status: int | None = None
    latency_ms: float | None = None
    protocol_version: str = ""
    server_name: str = ""
    server_version: str = ""
    notes: tuple[str, ...] = ()
    """The last lines that the server wrote to its standard error, and what was wrong with its output."""


class Connection:
    """One server, for the loop in which it is first used. `on_tools` is awaited with the whole list after each connect
    and each change; `on_status`, called with each change of the status, must not take long.
    """

    def __init__(
        self,
        spec: ServerSpec,
        *,
        auth: httpx2.Auth | None = None,
        on_tools: Callable[[Listing], Awaitable[None]],
        on_status: Callable[[Status], None],
    ) -> None:
        self.spec, self._auth = spec, auth
        self._on_tools, self._on_status = on_tools, on_status
        self._mask = masking(spec, auth)
        self._status = Status("down")
        self._notes = Notes()
        self._owner: asyncio.Task[None] | None = None
        self._link: Link | None = None
        # The same link, while it is open and takes calls.
        self._live: Link | None = None
        # How the server refused the last health check.
        self._refused = ""
        self._closing, self._opened, self._failures = asyncio.Event(), False, 0
        self._turn, self._wake = asyncio.Event(), asyncio.Event()
        self._calls = asyncio.Semaphore(spec.limits.calls_at_once)

    @property
    def status(self) -> Status:
        return replace(self._status, notes=self._notes.lines())

    @property
    def has_news(self) -> bool:
        """Return whether the server announced changed tools and the list has not been read since."""
        return self._link is not None and self._link.changed.is_set()

    def start(self) -> None:
        """Start connecting, once."""
        if self._owner is None and not self._closing.is_set():
            # In a context of its own, not that of the first caller.
            self._owner = asyncio.get_running_loop().create_task(self._own(), context=Context())

    async def call_tool(self, call: ToolCall) -> Outcome:
        """Make the call, repeated once where that is safe. Raises nothing, whatever the server does."""
        if why := too_large(call.arguments, self.spec.limits.argument_bytes):
            return NeverRan(why)
        seconds = call.seconds or self.spec.timeouts.call
        try:
            async with asyncio.timeout(seconds):
                await self._calls.acquire()
        except TimeoutError:
            return NeverRan(f"{self.spec.limits.calls_at_once} calls of this server are already running")
        try:
            outcome = await self._once(call, seconds)
            if isinstance(outcome, NeverRan) and outcome.retry:
                outcome = await self._once(call, seconds)
            return outcome
        finally:
            self._calls.release()

    async def list_tools(self) -> Listing:
        """Read the list now. Raises: ListingFailed"""
        live = await self._ready(self.spec.timeouts.connect)
        if isinstance(live, NeverRan):
            raise ListingFailed(live.reason)
        try:
            found = await listing(live)
        except ListingFailed as error:
            if not (error.is_refusal or live.reason):
                raise
            live.retire(f"{REFUSED}: {error}")
            if isinstance(live := await self._ready(self.spec.timeouts.connect), NeverRan):
                raise ListingFailed(live.reason) from error
            found = await listing(live)
        self._move()
        return found

    async def close(self) -> None:
        self._closing.set()
        self._wake.set()
        if self._link is not None:
            self._link.drop("the connection was closed here")
        if (owner := self._owner) is None:
            return
        await asyncio.wait({owner}, timeout=self.spec.timeouts.close + ENDING_SECONDS)
        if not owner.done():
            owner.cancel()
            await asyncio.wait({owner}, timeout=ENDING_SECONDS)
        if not owner.done():
            logger.error("the connection to %s could not be ended", self.spec.name)

    async def _once(self, call: ToolCall, seconds: float) -> Outcome:
        live = await self._ready(min(seconds, self.spec.timeouts.connect), call.cancel)
        if isinstance(live, NeverRan):
            return live
        if call.cancel.is_set():
            return NeverRan("the call was cancelled before it was sent")
        if call.check is not None and (why := await call.check()):
            return NeverRan(why, retry=self._live is not live)
        return await attempt(live, call)

    async def _ready(self, seconds: float, cancel: asyncio.Event | None = None) -> Link | NeverRan:
        """Return the open connection; wait for the attempt to connect that is under way, or for a new one."""
        self.start()
        self._wake.set()
        failures, cancel = self._failures, cancel or asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (self._live or self._closing.is_set() or cancel.is_set()) and self._failures == failures:
                    await _first_of(self._turn, cancel)
        return self._live or NeverRan(
            self._status.last_error or "the server is not connected", self._status.http_status
        )

    async def _own(self) -> None:
        """Connect, and stay until the connection is gone, again and again. For a task of its own."""
        pause = FIRST_PAUSE_SECONDS
        self._move(state="connecting")
        while not self._closing.is_set():
            began = time.monotonic()
            self._wake.clear()
            self._opened = False
            link = self._link = Link(self.spec, self._mask, self._lost, self._notes)
            await self._maintain(link)
            if not self._opened:
                self._failures += 1
            self._move()
            if self._closing.is_set():
                break
            if self._opened and time.monotonic() - began > SETTLED_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            # A call that waits for the connection shortens the pause, but not below the first one.
            await asyncio.sleep(FIRST_PAUSE_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause * random.uniform(0.8, 1.2) - FIRST_PAUSE_SECONDS):  # noqa: S311
                    await self._wake.wait()
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        self._move(state="down")

    def _lost(self, link: Link) -> None:
        self._live = None
        if not self._closing.is_set():
            error = {"last_error": link.reason, "last_error_at": now(), "http_status": link.http_status}
            self._move(state="down", latency_ms=None, **error)

    async def _maintain(self, link: Link) -> None:
        """Open the connection and stay until it ends, in its own task. Raises nothing, whatever the server does."""
        exchange = Exchange(link.spec.timeouts.connect)
        CURRENT.set(exchange)
        try:
            await self._open_and_stay(link)
        except (*EXPECTED, BaseExceptionGroup) as error:
            reason = in_words(error, link.hide)
        except Exception as error:
            logger.exception("the connection to %s ended in a way that nobody foresaw", link.spec.name)
            reason = type(error).__name__
        else:
            reason = f"no connection within {link.spec.timeouts.connect:g} seconds"
        if exchange.trouble.done():
            reason = exchange.trouble.result().reason
        elif link.http_status is not None:
            reason = f"{reason} (HTTP {link.http_status})"
        exchange.close()
        link.drop(reason)

    async def _open_and_stay(self, link: Link) -> None:
        timeouts, is_subscribed = link.spec.timeouts, asyncio.Event()
        with anyio.CancelScope(deadline=anyio.current_time() + timeouts.connect) as scope:
            link.stop = scope.cancel
            async with opened(link, self._auth) as client:
                if self._refused and (why := await refusal(link)):
                    # A handshake alone does not prove that it is healthy again.
                    link.drop(why)
                    return
                self._refused = ""
                scope.deadline, link.stop = float("inf"), None
                self._opened, self._live = True, link
                self._move(
                    state="up",
                    http_status=None,
                    latency_ms=link.handshake_ms,
                    protocol_version=link.protocol_version,
                    server_name=link.server_name,
                    server_version=link.server_version,
                )
                async with anyio.create_task_group() as group:
                    group.start_soon(self._follow, link, is_subscribed)
                    group.start_soon(self._look_after, link)
                    if link.is_modern:
                        group.start_soon(_subscribe, client, link, is_subscribed)
                    else:
                        is_subscribed.set()
                    await link.dropped.wait()
                    group.cancel_scope.cancel()
                scope.deadline = anyio.current_time() + timeouts.close

    async def _follow(self, link: Link, is_subscribed: asyncio.Event) -> None:
        """Read the list of tools now and after each notice of change, less often if notices keep coming."""
        pause = link.spec.timeouts.settle
        with anyio.move_on_after(SUBSCRIBED_SECONDS):
            await is_subscribed.wait()
        while True:
            link.changed.clear()
            began = time.monotonic()
            try:
                await self._has_tools(await listing(link))
            except ListingFailed as error:
                self._move(last_error=str(error), last_error_at=now())
            read_at = time.monotonic()
            await link.changed.wait()
            often = time.monotonic() - read_at < 2 * pause
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS) if often else link.spec.timeouts.settle
            rest = min(PAUSES_FOR_ONE * (read_at - began), LONGEST_REST_SECONDS)
            await asyncio.sleep(max(pause, rest - (time.monotonic() - read_at)))

    async def _look_after(self, link: Link) -> None:
        """Check regularly that the server answers, except while it executes a call."""
        while True:
            with anyio.move_on_after(link.spec.timeouts.health_every):
                await link.doubted.wait()
            doubted = link.doubted.is_set()
            link.doubted.clear()
            if link.is_calling():
                await asyncio.sleep(0.2)
                if doubted:
                    link.doubted.set()
                continue
            began = time.monotonic()
            try:
                self._refused = await refusal(link)
            except (TimeoutError, RuntimeError) as error:
                if not link.is_calling():
                    link.drop(str(error) or "the server no longer answers")
                continue
            if self._refused:
                link.retire(self._refused)
            else:
                self._move(latency_ms=(time.monotonic() - began) * 1000)

    async def _has_tools(self, found: Listing) -> None:
        self._move(last_error=found.trouble)
        try:
            await self._on_tools(found)
        except Exception:
            logger.exception("taking in the tools of %s failed", self.spec.name)

    def _move(self, **changes: Any) -> None:
        self._status = replace(self._status, **changes)
        self._turn.set()
        self._turn = asyncio.Event()
        self._on_status(self.status)


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


@dataclass(frozen=True)
class Trial(Status):
    """The last status of a test, and its outcome: `error` is empty if the server listed its tools."""

    state: State = "down"
    error: str = ""
    listing: Listing | None = None


async def try_connect(spec: ServerSpec, *, auth: httpx2.Auth | None = None) -> Trial:
    """Connect, read the list of tools and disconnect, within the timeouts. Raises nothing, whatever the server does."""
    listings, is_over = list[Listing](), asyncio.Event()

    async def has_tools(found: Listing) -> None:
        listings.append(found)
        is_over.set()

    def has_status(status: Status) -> None:
        if status.last_error:
            is_over.set()

    connection = Connection(spec, auth=auth, on_tools=has_tools, on_status=has_status)
    connection.start()
    timeouts = spec.timeouts
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeouts.connect + timeouts.listing + timeouts.close + ENDING_SECONDS):
                await is_over.wait()
        status = connection.status
    finally:
        await connection.close()
    late = "the list of tools did not come in time" if status.state == "up" else "no connection in time"
    outcome = {"listing": listings[0]} if listings else {"error": status.last_error or late}
    return Trial(**vars(status) | {"notes": connection.status.notes} | outcome)


async def _subscribe(client: Client, link: Link, is_subscribed: asyncio.Event) -> None:
    """Subscribe to changes, as the newer protocol requires. Sets `is_subscribed` once the server has answered."""
    pause = SUBSCRIBED_SECONDS
    while True:
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + link.spec.timeouts.health) as scope:
                async with client.listen(tools_list_changed=True) as subscription:
                    scope.deadline = float("inf")
                    if not subscription.honored.tools_list_changed:
                        return
                    # Changes before the subscription were not announced.
                    link.changed.set()
                    is_subscribed.set()
                    async for _ in subscription:
                        pause = SUBSCRIBED_SECONDS
                        link.changed.set()
        except ListenNotSupportedError:
            return
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                return
        except SubscriptionLost:
            link.doubted.set()
        finally:
            is_subscribed.set()
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        # Nor were changes in the meantime.
        link.changed.set()
