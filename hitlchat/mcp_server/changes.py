"""Telling clients that the catalog changed, whichever process changed it: a cheap look at it every second."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool
from hitlchat.mcp_server.door import ACCESS
from hitlchat.mcp_server.models import McpToken
from hitlchat.upstreams import exposure

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
TELL_SECONDS = 1.0
COLUMNS = ("name", "title", "description", "definition_hash", "risk_level", "hitl_mode", "signed_in_only", "source")


Listener = Callable[[Any], None]
# By which token the stream is opened that subscribes; the SDK's bus does not say. None: nobody knows, so it hears all.
_opening: ContextVar[int | None] = ContextVar("opening", default=None)


@dataclass(frozen=True)
class Version:
    """What lists are made from: what they have in common, and the limits of each token. Other ones are other lists."""

    common: str = ""
    limits: dict[int, str] = field(default_factory=dict)

    def differs(self, other: "Version", token_id: int | None) -> bool:
        """Whether the list of this token may be another one."""
        if self.common != other.common:
            return True
        if token_id is None:
            return self.limits != other.limits
        return self.limits.get(token_id) != other.limits.get(token_id)


class Audience(InMemorySubscriptionBus):
    """Who is to be told: streams of clients that listen (2026-07-28), and sessions of older ones; each with the token
    that it came with."""

    def __init__(self) -> None:
        super().__init__()
        self._streams = 0
        self._sessions: dict[Connection, int | None] = {}
        self._someone = asyncio.Event()
        # Before anyone could have listed it; empty if that failed, which nobody's list is like.
        self._known = self._before = Version()

    def listening(self, most: int) -> Callable[..., Any]:
        """The handler of subscriptions/listen."""
        handler = ListenHandler(self, max_subscriptions=most)

        async def listen(ctx: ServerRequestContext[Any], params: types.SubscriptionsListenRequestParams) -> Any:
            _opening.set(_token_of(ctx))
            return await handler(ctx, params)

        return listen

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        token_id = _opening.get()

        def heard(event: Any) -> None:
            # Whose list of tools changed says nothing of what else is told.
            if not isinstance(event, ToolsListChanged) or self._concerns(token_id):
                listener(event)

        leave = super().subscribe(heard)
        self._streams += 1
        self._someone.set()
        left = False

        def unsubscribe() -> None:
            nonlocal left
            if not left:
                left = True
                self._streams -= 1
                leave()

        return unsubscribe

    async def join(self, ctx: ServerRequestContext[Any], _: types.NotificationParams) -> None:
        """A client of an older revision has finished its handshake."""
        # The SDK has no other place that lives as long as a session and knows of its end.
        connection = ctx.session._connection  # noqa: SLF001
        if connection not in self._sessions:
            self._sessions[connection] = _token_of(ctx)
            connection.exit_stack.callback(self._sessions.pop, connection, None)
            self._someone.set()

    async def tell(self) -> None:
        """Those whose list may be another one than before."""
        await self.publish(ToolsListChanged())
        concerned = [connection for connection, token_id in self._sessions.items() if self._concerns(token_id)]
        await asyncio.gather(*map(_tell, concerned))

    def _concerns(self, token_id: int | None) -> bool:
        return self._known.differs(self._before, token_id)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        await self._look()
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        while True:
            if not self._streams and not self._sessions:
                self._someone.clear()
                await self._someone.wait()
            # What changed while nobody was there is told as well: who has come since may have listed it before.
            if await self._look():
                await self.tell()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> bool:
        """Whether the catalog is another one than when it was looked at last."""
        try:
            seen = await in_db(version)()
        except Exception:
            # The database may be restarting: that must not end the watch.
            logger.exception("Looking for changes of the catalog failed; it is tried again")
            return False
        self._known, self._before = seen, self._known
        return seen != self._before


async def _tell(connection: Connection) -> None:
    # One that takes nothing must not keep the others waiting.
    with anyio.move_on_after(TELL_SECONDS):
        await connection.send_tool_list_changed()


def _token_of(ctx: ServerRequestContext[Any]) -> int | None:
    return ctx.request.scope[ACCESS].token_id if ctx.request is not None else None


def version() -> Version:
    """Another one whenever some client's list may be another one."""
    tools = Tool.objects.filter(published=True).order_by("name").values_list(*COLUMNS)
    limits = McpToken.objects.order_by("pk").values_list("pk", "tools", "ceiling")
    common = canonical.sha256([[*map(list, tools)], exposure.standing().mode])
    return Version(common, {pk: canonical.dumps(rest) for pk, *rest in limits})
