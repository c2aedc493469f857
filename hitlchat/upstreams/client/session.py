"""The session of an open connection: its tools are followed, and whether the server is there is looked at."""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

import anyio
import httpx2
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND
from pydantic import ValidationError

from hitlchat.upstreams.client.calls import Listing, ListingFailed, listing, refusal
from hitlchat.upstreams.client.link import CURRENT, Exchange, Link, masked_line, where
from hitlchat.upstreams.client.opening import Live, NotAllowed, opened
from hitlchat.upstreams.client.spec import Surroundings
from hitlchat.upstreams.client.stdio import NotStarted

# What the SDK and the transports raise when a server is at fault; in groups as well.
EXPECTED: Final = (
    MCPError,
    SubscriptionLost,
    ValidationError,
    NotStarted,
    NotAllowed,
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.SSEError,
    OSError,
    RuntimeError,
    ValueError,
)
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
# A list that never stays the same is read for a small part of the time only, however long it takes to take it in.
PAUSES_FOR_ONE = 10.0
LONGEST_REST_SECONDS = 300.0
BUSY_SECONDS = 0.2

logger = logging.getLogger(__name__)


class Keeper(ABC):
    """Whoever keeps a connection open, and is told how it is. `refused`: how the last look at its health was."""

    refused = ""

    @abstractmethod
    def is_open(self, live: Live) -> None: ...

    @abstractmethod
    async def has_tools(self, found: Listing) -> None: ...

    @abstractmethod
    def is_healthy(self, latency_ms: float) -> None: ...

    @abstractmethod
    def has_trouble(self, reason: str) -> None: ...

    async def check_health(self, live: Live) -> None:
        """Ask for nothing, and see whether an answer comes; a server that is busy with a call may take its time."""
        began = time.monotonic()
        try:
            self.refused = await refusal(live)
        except (TimeoutError, RuntimeError) as error:
            if live.link.is_calling():
                return
            live.link.drop(str(error) or "the server does not answer any more")
            return
        if self.refused:
            live.link.retire(self.refused)
        else:
            self.is_healthy((time.monotonic() - began) * 1000)


async def maintain(link: Link, surroundings: Surroundings, auth: httpx2.Auth | None, keeper: Keeper) -> str:
    """Open the connection, stay until it ends, and return the reason. Handshake and goodbye are bounded.

    For a task of its own, whose context it changes. Nothing that a server does makes it raise.
    """
    exchange = Exchange(link.spec.timeouts.connect)
    CURRENT.set(exchange)
    try:
        await _open_and_stay(link, surroundings, auth, keeper)
    except (*EXPECTED, BaseExceptionGroup) as error:
        reason = _in_words(error, link.hide)
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
    return link.reason


async def _open_and_stay(link: Link, surroundings: Surroundings, auth: httpx2.Auth | None, keeper: Keeper) -> None:
    timeouts = link.spec.timeouts
    with anyio.CancelScope(deadline=anyio.current_time() + timeouts.connect) as scope:
        link.stop = scope.cancel
        async with opened(link, surroundings, auth) as live:
            if keeper.refused and (why := await refusal(live)):
                # A handshake alone does not make it healthy again.
                link.drop(why)
                return
            keeper.refused = ""
            scope.deadline, link.stop = float("inf"), None
            keeper.is_open(live)
            await _stay(live, keeper)
            scope.deadline = anyio.current_time() + timeouts.close


async def _stay(live: Live, keeper: Keeper) -> None:
    is_subscribed = asyncio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_follow, live, keeper, is_subscribed)
        group.start_soon(_look_after, live, keeper)
        if live.is_modern:
            group.start_soon(_subscribe, live, is_subscribed)
        else:
            is_subscribed.set()
        await live.link.dropped.wait()
        group.cancel_scope.cancel()


async def _follow(live: Live, keeper: Keeper, is_subscribed: asyncio.Event) -> None:
    """Read the list of tools now and after every notice of change; less and less often if notices never end.

    A server that is quick to say that it will tell of changes is read once, a slow one again when it does.
    """
    link, pause = live.link, live.link.spec.timeouts.settle
    with anyio.move_on_after(FIRST_PAUSE_SECONDS):
        await is_subscribed.wait()
    while True:
        link.changed.clear()
        began = time.monotonic()
        try:
            await keeper.has_tools(await listing(live))
        except ListingFailed as error:
            keeper.has_trouble(str(error))
        read_at = time.monotonic()
        await link.changed.wait()
        often = time.monotonic() - read_at < 2 * pause
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS) if often else link.spec.timeouts.settle
        rest = min(PAUSES_FOR_ONE * (read_at - began), LONGEST_REST_SECONDS)
        await asyncio.sleep(max(pause, rest - (time.monotonic() - read_at)))


async def _look_after(live: Live, keeper: Keeper) -> None:
    link = live.link
    while True:
        with anyio.move_on_after(link.spec.timeouts.health_every):
            await link.doubted.wait()
        doubted = link.doubted.is_set()
        link.doubted.clear()
        if link.is_calling():
            await asyncio.sleep(BUSY_SECONDS)
            if doubted:
                link.doubted.set()
            continue
        await keeper.check_health(live)


async def _subscribe(live: Live, is_subscribed: asyncio.Event) -> None:
    """Ask to be told of changes, as servers of the newer protocol want it; `is_told` once that is answered."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + live.link.spec.timeouts.health) as scope:
                async with live.client.listen(tools_list_changed=True) as subscription:
                    scope.deadline = float("inf")
                    if not subscription.honored.tools_list_changed:
                        return
                    # What changed before was told to nobody.
                    live.link.changed.set()
                    is_subscribed.set()
                    async for _ in subscription:
                        pause = FIRST_PAUSE_SECONDS
                        live.link.changed.set()
        except ListenNotSupportedError:
            return
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                return
        except SubscriptionLost:
            live.link.doubted.set()
        finally:
            is_subscribed.set()
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        # What changed in the meantime was told to nobody.
        live.link.changed.set()


def _in_words(error: BaseException, hide: Callable[[str], str]) -> str:
    """Return an error in words; of a group the first that says something. `hide` takes secrets out."""
    match error:
        case BaseExceptionGroup():
            leaves = [each for each in error.exceptions if isinstance(each, Exception)] or error.exceptions
            return _in_words(leaves[0], hide)
        case ValidationError():
            return f"the server's answer breaks the protocol: {where(error)}"
        case TimeoutError():
            return "the server did not answer in time"
        case httpx2.HTTPStatusError():
            return f"the server answered {error.response.status_code}"
        case _:
            return masked_line(str(error), hide) or type(error).__name__
