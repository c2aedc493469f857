"""The one owner of a server: connects, notices that it is gone, connects again; all owners of a process; one test."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import httpx2

from hitlchat.upstreams.client.calls import REFUSED, Listing, ListingFailed, ToolCall, attempt, listing, too_large
from hitlchat.upstreams.client.http import ConnectionMask
from hitlchat.upstreams.client.link import Link, Notes
from hitlchat.upstreams.client.opening import Live
from hitlchat.upstreams.client.results import NeverRan, Outcome
from hitlchat.upstreams.client.session import Keeper, maintain
from hitlchat.upstreams.client.spec import ServerSpec, Surroundings

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0
# A connection that lasted so long was a good one: the next failure is the first.
SETTLED_SECONDS = 10.0
# What ending a program may take, beyond the time that a server has for its goodbye.
ENDING_SECONDS = 8.0

State = Literal["connecting", "up", "down"]

logger = logging.getLogger(__name__)


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Status:
    """`since`: when it came into this state. `last_error` stays, secrets masked, until the server is up for good, and
    `latency_ms` is of the last exchange without work. `http_status`: 401 where the server wants someone to sign in.
    """

    state: State
    since: datetime = field(default_factory=now)
    last_error: str = ""
    last_error_at: datetime | None = None
    http_status: int | None = None
    latency_ms: float | None = None
    protocol_version: str = ""
    server_name: str = ""
    server_version: str = ""
    tool_count: int | None = None
    notes: tuple[str, ...] = ()
    """The last lines that the server wrote to its standard error, and what was wrong with its output."""


OnTools = Callable[[str, Listing], Awaitable[None]]
OnStatus = Callable[[str, Status], None]


class Connection(Keeper):
    """One server, for the loop in which it is first used. `on_tools` gets the list after every connect and change."""

    def __init__(
        self,
        spec: ServerSpec,
        surroundings: Surroundings,
        *,
        auth: httpx2.Auth | None = None,
        on_tools: OnTools | None = None,
        on_status: OnStatus | None = None,
    ) -> None:
        self.spec, self._surroundings, self._auth = spec, surroundings, auth
        self._on_tools, self._on_status = on_tools, on_status
        self._mask = ConnectionMask(spec, auth)
        self._status = Status("down")
        self._notes = Notes()
        self._owner: asyncio.Task[None] | None = None
        self._link: Link | None = None
        self._live: Live | None = None
        self._closing, self._opened, self._failures = asyncio.Event(), False, 0
        self._turn, self._wake = asyncio.Event(), asyncio.Event()
        self._calls = asyncio.Semaphore(spec.limits.calls_at_once)

    @property
    def status(self) -> Status:
        return replace(self._status, notes=self._notes.lines())

    @property
    def has_news(self) -> bool:
        """Return whether the server has said that its tools changed, and the list was not read since."""
        return self._link is not None and self._link.changed.is_set()

    def start(self) -> None:
        """Begin to connect, unless that has been done."""
        if self._owner is None and not self._closing.is_set():
            # Without the context of whoever happens to come first.
            self._owner = asyncio.get_running_loop().create_task(self._own(), context=Context())

    async def call_tool(self, call: ToolCall) -> Outcome:
        """Make the call, over a new connection if the one there was is gone; repeated once where that is safe."""
        if why := too_large(call.arguments, self.spec.limits.argument_bytes):
            return NeverRan(why)
        seconds = call.seconds or self.spec.timeouts.call
        try:
            async with asyncio.timeout(seconds):
                await self._calls.acquire()
        except TimeoutError:
            return NeverRan(f"{self.spec.limits.calls_at_once} calls of this server are running already")
        try:
            outcome = await self._once(call, seconds)
            if isinstance(outcome, NeverRan) and outcome.retry:
                outcome = await self._once(call, seconds)
            return outcome
        finally:
            self._calls.release()

    async def list_tools(self) -> Listing:
        """Read the list now. ListingFailed."""
        live = await self._ready(self.spec.timeouts.connect)
        if isinstance(live, NeverRan):
            raise ListingFailed(live.reason)
        try:
            found = await listing(live)
        except ListingFailed as error:
            if not (error.is_refusal or live.link.reason):
                raise
            live.link.retire(f"{REFUSED}: {error}")
            if isinstance(live := await self._ready(self.spec.timeouts.connect), NeverRan):
                raise ListingFailed(live.reason) from error
            found = await listing(live)
        self._move(tool_count=len(found.tools))
        return found

    async def close(self) -> None:
        """End the connection and everything that belongs to it, within bounded time."""
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
        if call.cancel is not None and call.cancel.is_set():
            return NeverRan("the call was cancelled before it was sent")
        if call.check is not None and (why := await call.check()):
            return NeverRan(why, retry=self._live is not live)
        return await attempt(live, call)

    async def _ready(self, seconds: float, cancel: asyncio.Event | None = None) -> Live | NeverRan:
        """The open connection; waits for the attempt to connect that is under way, or for a new one."""
        self.start()
        self._wake.set()
        failures = self._failures
        cancelled = asyncio.create_task(cancel.wait()) if cancel else None
        try:
            async with asyncio.timeout(seconds):
                while self._live is None and self._failures == failures and not self._closing.is_set():
                    turned = asyncio.create_task(self._turn.wait())
                    await asyncio.wait({turned, *filter(None, [cancelled])}, return_when=asyncio.FIRST_COMPLETED)
                    turned.cancel()
                    if cancelled is not None and cancelled.done():
                        break
        except TimeoutError:
            pass
        finally:
            if cancelled is not None:
                cancelled.cancel()
        return self._live or NeverRan(
            self._status.last_error or "the server is not connected", self._status.http_status
        )

    async def _own(self) -> None:
        """Connect, and stay until the connection is gone, again and again. For a task of its own."""
        pause = FIRST_PAUSE_SECONDS
        self._move("connecting")
        while not self._closing.is_set():
            began = time.monotonic()
            self._wake.clear()
            self._opened = False
            link = self._link = Link(self.spec, self._mask, self._lost, self._notes)
            await maintain(link, self._surroundings, self._auth, self)
            if not self._opened:
                self._failures += 1
            self._move()
            if self._closing.is_set():
                break
            if self._opened and time.monotonic() - began > SETTLED_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            # A call that waits for the connection cuts it short, but not below the first pause.
            await asyncio.sleep(FIRST_PAUSE_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause * random.uniform(0.8, 1.2) - FIRST_PAUSE_SECONDS):  # noqa: S311
                    await self._wake.wait()
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        self._move("down")

    def _lost(self, link: Link) -> None:
        self._live = None
        if not self._closing.is_set():
            error = {"last_error": link.reason, "last_error_at": now(), "http_status": link.http_status}
            self._move("down", latency_ms=None, **error)

    def is_open(self, live: Live) -> None:
        self._opened = True
        self._live = live
        self._move(
            "up",
            http_status=None,
            latency_ms=live.handshake_ms,
            protocol_version=live.protocol_version,
            server_name=live.server_name,
            server_version=live.server_version,
        )

    async def has_tools(self, found: Listing) -> None:
        self._move(tool_count=len(found.tools), last_error=found.trouble)
        if self._on_tools is None:
            return
        try:
            await self._on_tools(self.spec.name, found)
        except Exception:
            logger.exception("taking in the tools of %s failed", self.spec.name)

    def is_healthy(self, latency_ms: float) -> None:
        self._move(latency_ms=latency_ms)

    def has_trouble(self, reason: str) -> None:
        self._move(last_error=reason, last_error_at=now())

    def _move(self, state: State | None = None, **changes: Any) -> None:
        if state is not None and state != self._status.state:
            changes |= {"state": state, "since": now()}
        if changes:
            self._status = replace(self._status, **changes)
        self._turn.set()
        self._turn = asyncio.Event()
        if self._on_status is not None:
            self._on_status(self.spec.name, self.status)


class Pool:
    """Connections by the name of their server, opened when they are first needed. Of one loop: whichever uses it first.

    `on_tools` is awaited with a server's whole list after each connect and each change of it; `on_status` is called
    with every change of a server's status, and must not take long.
    """

    def __init__(
        self, surroundings: Surroundings, *, on_tools: OnTools | None = None, on_status: OnStatus | None = None
    ) -> None:
        self._surroundings, self._on_tools, self._on_status = surroundings, on_tools, on_status
        self._connections: dict[str, Connection] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changing = asyncio.Lock()

    async def put(self, spec: ServerSpec, *, auth: httpx2.Auth | None = None) -> None:
        """Know this server from now on. One of that name with another spec is closed first; the same stays as it is."""
        self._check_loop()
        async with self._changing:
            old = self._connections.get(spec.name)
            if old is not None and old.spec == spec:
                return
            await self._take_out(spec.name)
            self._connections[spec.name] = Connection(
                spec, self._surroundings, auth=auth, on_tools=self._on_tools, on_status=self._on_status
            )

    async def remove(self, name: str) -> None:
        self._check_loop()
        async with self._changing:
            await self._take_out(name)

    def connect(self, name: str) -> None:
        """Begin to connect without waiting. LookupError."""
        self._check_loop()
        self._connections[name].start()

    def status(self, name: str) -> Status:
        """Return the status of a server. Raises: LookupError, where none of that name is known here"""
        return self._connections[name].status

    def has_news(self, name: str) -> bool:
        """Return whether the server has said that its tools changed, and `on_tools` was not told yet how."""
        connection = self._connections.get(name)
        return connection is not None and connection.has_news

    async def call_tool(self, server: str, name: str, arguments: dict[str, Any], **how: Any) -> Outcome:
        """Call a tool of this server; `how` are the other fields of a ToolCall. Never raises for the server's sake."""
        self._check_loop()
        connection = self._connections.get(server)
        if connection is None:
            return NeverRan("the server is not known here")
        return await connection.call_tool(ToolCall(name, arguments, **how))

    async def list_tools(self, server: str) -> Listing:
        """Read its list of tools now. ListingFailed."""
        self._check_loop()
        connection = self._connections.get(server)
        if connection is None:
            raise ListingFailed("the server is not known here")
        return await connection.list_tools()

    async def close(self) -> None:
        """Close all connections, at the same time and within bounded time."""
        async with self._changing:
            connections, self._connections = list(self._connections.values()), {}
            await asyncio.gather(*(connection.close() for connection in connections))

    async def _take_out(self, name: str) -> None:
        if (old := self._connections.pop(name, None)) is not None:
            await old.close()

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise RuntimeError("the upstream servers are connected in another event loop of this process")


@dataclass(frozen=True)
class Trial:
    """The outcome of a test. `error` is empty if the server was reached and told its tools; `http_status` 401 asks for
    someone to sign in; `notes` are what the server wrote to its standard error.
    """

    error: str = ""
    http_status: int | None = None
    latency_ms: float | None = None
    protocol_version: str = ""
    server_name: str = ""
    server_version: str = ""
    listing: Listing | None = None
    notes: tuple[str, ...] = ()


class _Trier(Keeper):
    def __init__(self) -> None:
        self.live: Live | None = None
        self.listing: Listing | None = None
        self.trouble = ""

    def is_open(self, live: Live) -> None:
        self.live = live

    async def has_tools(self, found: Listing) -> None:
        self.listing = found
        self._done()

    def has_trouble(self, reason: str) -> None:
        self.trouble = reason
        self._done()

    def is_healthy(self, latency_ms: float) -> None:
        """Ignore the latency: nobody asks how healthy a trial is."""

    def _done(self) -> None:
        if self.live is not None:
            self.live.link.drop("the test is over")


async def try_connect(spec: ServerSpec, surroundings: Surroundings, *, auth: httpx2.Auth | None = None) -> Trial:
    """Connect, read the list of tools, and disconnect, within the spec's timeouts. Never raises for the server's sake.

    The connection that is in use, if there is one, is not touched.
    """
    trier, link = _Trier(), Link(spec, ConnectionMask(spec, auth))
    trying = asyncio.create_task(maintain(link, surroundings, auth, trier), context=Context())
    timeouts = spec.timeouts
    try:
        await asyncio.wait({trying}, timeout=timeouts.connect + timeouts.listing + timeouts.close + ENDING_SECONDS)
    finally:
        if not trying.done():
            trying.cancel()
            await asyncio.wait({trying}, timeout=ENDING_SECONDS)
    live, notes = trier.live, link.notes.lines()
    if live is None:
        return Trial(link.reason or "no connection in time", link.http_status, notes=notes)
    late = "the list of tools did not come in time"
    error = "" if trier.listing is not None else trier.trouble or link.reason or late
    about = (live.handshake_ms, live.protocol_version, live.server_name, live.server_version)
    return Trial(error, link.http_status, *about, trier.listing, notes)
