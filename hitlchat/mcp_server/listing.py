"""tools/list: the tools that one token may use, and word to clients when the catalog changed in any process."""

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any

import anyio
import mcp_types as types
from django.db.models import QuerySet
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

from hitlchat.base import canonical
from hitlchat.base.background import Worker
from hitlchat.base.database import in_db
from hitlchat.gate import deciders
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.tools import listed, tools_for
from hitlchat.mcp_server import outcomes
from hitlchat.mcp_server.authentication import ACCESS
from hitlchat.mcp_server.models import McpToken
from hitlchat.mcp_server.tokens import Access
from hitlchat.upstreams import exposure
from hitlchat.upstreams.catalog import SOURCE as COMPOSED
from hitlchat.upstreams.models import Exposure

PAGE = 100
APPROVAL = {HitlMode.REQUIRED: "always", HitlMode.CONDITIONAL: "sometimes", HitlMode.DISABLED: "never"}
# From here on a tool reaches beyond this server, or may.
REACHES_OUT, DESTROYS = 3, 4
CHECK_SECONDS = 1.0
# In place of a token.
IN_COMMON = 0
COLUMNS = (
    *("name", "title", "description", "definition_hash", "risk_level", "risk_inherent", "hitl_mode"),
    *("signed_in_only", "source", "risk_unknown"),
)

Listener = Callable[[Any], None]

# By which token the stream is opened that subscribes; the SDK's bus does not say. None: nobody knows, so it hears all.
_opening: ContextVar[int | None] = ContextVar("opening", default=None)


async def list_tools(
    ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    assert ctx.request is not None
    return await in_db(_page)(ctx.request.scope[ACCESS], params.cursor if params else None)


def visible(access: Access) -> QuerySet[Tool]:
    """Return the catalog of one token: published, offered by the installation, and within its limits."""
    tools = tools_for(access.caller, access.tools).filter(risk_level__lte=access.ceiling)
    mode = Exposure.current().mode
    if not exposure.offers(mode, COMPOSED):
        return tools.exclude(source=COMPOSED)
    return tools if exposure.offers(mode, "") else tools.filter(source=COMPOSED)


def described(tool: Tool, *, trusted: bool = False) -> types.Tool:
    """Describe a tool to a client. `trusted`: it may report its user's answers."""
    return types.Tool(
        name=tool.name,
        title=tool.title or None,
        description=tool.description,
        input_schema=outcomes.input_schema(tool),
        output_schema=outcomes.output_schema(tool),
        # What the tool does is judged here: hints of whoever made it are none. Asking people does not change it.
        annotations=types.ToolAnnotations(
            read_only_hint=tool.care <= 1,
            destructive_hint=tool.care >= DESTROYS,
            open_world_hint=tool.care >= REACHES_OUT or tool.source == COMPOSED,
        ),
        _meta={
            "hitlchat/riskLevel": tool.risk_level,
            "hitlchat/risk": RISK_LABELS[tool.risk_level],
            "hitlchat/riskUnknown": tool.risk_unknown,
            "hitlchat/approval": APPROVAL[HitlMode(tool.hitl_mode)],
            "hitlchat/signedInOnly": not (trusted and deciders.will_do(tool)),
        },
    )


class Audience(InMemorySubscriptionBus):
    """The clients to be told, each with its token: streams that listen (2026-07-28), and sessions of older ones."""

    def __init__(self) -> None:
        super().__init__()
        self._streams = set[Listener]()
        self._sessions: dict[Connection, int | None] = {}
        self._worker = Worker("catalog", self._look, CHECK_SECONDS, longest=CHECK_SECONDS)
        self._has_looked = False
        # Before anyone could have listed it; empty if that failed, which nobody's list is like.
        self._current = self._previous = dict[int, str]()

    def listening(self, most: int) -> Callable[..., Any]:
        handler = ListenHandler(self, max_subscriptions=most)

        async def listen(ctx: ServerRequestContext[Any], params: types.SubscriptionsListenRequestParams) -> Any:
            _opening.set(_token_of(ctx))
            return await handler(ctx, params)

        return listen

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        token_id = _opening.get()

        def forward(event: Any) -> None:
            # Whose list of tools changed says nothing of what else is told.
            if not isinstance(event, ToolsListChanged) or self._concerns(token_id):
                listener(event)

        leave = super().subscribe(forward)
        self._streams.add(forward)
        leaving = ExitStack()
        leaving.callback(leave)
        leaving.callback(self._streams.discard, forward)
        return leaving.close

    async def join(self, ctx: ServerRequestContext[Any], _: types.NotificationParams) -> None:
        """Add a client of an older revision that has finished its handshake."""
        # The SDK has no other place that lives as long as a session and knows of its end.
        connection = ctx.session._connection  # noqa: SLF001
        if connection not in self._sessions:
            self._sessions[connection] = _token_of(ctx)
            connection.exit_stack.callback(self._sessions.pop, connection, None)

    async def notify(self) -> None:
        await self.publish(ToolsListChanged())
        concerned = [connection for connection, token_id in self._sessions.items() if self._concerns(token_id)]
        await asyncio.gather(*map(_notify, concerned))

    def _concerns(self, token_id: int | None) -> bool:
        """Return whether the list of this token may be another one than before."""
        if token_id is None:
            return self._current != self._previous
        return any(self._current.get(key) != self._previous.get(key) for key in (IN_COMMON, token_id))

    @asynccontextmanager
    async def watching(self) -> AsyncIterator["Audience"]:
        await self._worker.turn()
        task = asyncio.create_task(self._worker.work())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _look(self) -> None:
        # What changes while nobody is there is told later: who comes may have listed the catalog before.
        if self._has_looked and not self._streams and not self._sessions:
            return
        self._has_looked = True
        self._current, self._previous = await in_db(version)(), self._current
        if self._current != self._previous:
            await self.notify()


def version() -> dict[int, str]:
    """Return what the lists of all tokens are made of, by token: it differs whenever some client's list may."""
    tools = listed().filter(published=True).order_by("name").values_list(*COLUMNS)
    limits = McpToken.objects.order_by("pk").values_list("pk", "tools", "ceiling")
    common = canonical.sha256([[*map(list, tools)], Exposure.current().mode])
    return {IN_COMMON: common} | {pk: canonical.dumps(rest) for pk, *rest in limits}


def _page(access: Access, cursor: str | None) -> types.ListToolsResult:
    after = _place(cursor) if cursor is not None else ""
    found = list(visible(access).select_related("oversight").filter(name__gt=after).order_by("name")[: PAGE + 1])
    last = found[PAGE - 1].name if len(found) > PAGE else None
    # Of one person's list nobody else may keep a copy, and it may change at any time.
    return types.ListToolsResult(
        tools=[described(tool, trusted=access.trusted) for tool in found[:PAGE]],
        next_cursor=base64.urlsafe_b64encode(last.encode()).decode("ascii") if last else None,
        ttl_ms=0,
        cache_scope="private",
    )


def _place(cursor: str) -> str:
    try:
        name = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        name = ""
    if not 1 <= len(name) <= 64 or "\x00" in name:
        raise MCPError(types.INVALID_PARAMS, "cursor: expected one from an earlier answer.")
    return name


async def _notify(connection: Connection) -> None:
    # One that takes nothing must not keep the others waiting.
    with anyio.move_on_after(1.0):
        await connection.send_tool_list_changed()


def _token_of(ctx: ServerRequestContext[Any]) -> int | None:
    return ctx.request.scope[ACCESS].token_id if ctx.request is not None else None
