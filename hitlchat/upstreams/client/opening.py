"""Opening a connection: from a spec to one over which the handshake has succeeded, with a tap that stops floods."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Self

import anyio
import httpx2
import mcp_types as types
from mcp.client import Client, ClientRequestContext, IncomingMessage
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage

from hitlchat.upstreams.client import http
from hitlchat.upstreams.client.link import CURRENT, Link, ask, masked_line
from hitlchat.upstreams.client.results import Unreadable, complaint
from hitlchat.upstreams.client.spec import VERSION
from hitlchat.upstreams.client.stdio import stdio

# Limits per period, for the server's own requests and for messages that nobody waits for: notices, progress, late
# answers. Messages above them are read and dropped.
PERIOD_SECONDS = 10.0
MOST_REQUESTS, MOST_NOTICES = 100, 1000
# Reading dropped messages slowly also slows down their sender.
DROPPED_AT_ONCE, DROPPED_PAUSE_SECONDS = 50, 0.01

Item = SessionMessage | Exception

# The SDK logs a traceback for each message that it does not understand; the notes have those too.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)


@asynccontextmanager
async def opened(link: Link, auth: httpx2.Auth | None) -> AsyncIterator[Client]:
    """Open a connection, to be left in the same task. Raises: ConnectionRefusedError; errors of the SDK, in groups"""

    async def question(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001
        return await ask(link, params)

    async def notice(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            link.changed.set()

    began = time.monotonic()
    client = Client(
        _transport(link, auth),
        cache=None,
        client_info=types.Implementation(name="hitlchat", version=VERSION),
        elicitation_callback=question,
        message_handler=notice,
        mode="legacy" if link.spec.older_protocol else "auto",
    )
    async with client:
        capabilities = client.server_capabilities
        if capabilities is not None and link.spec.is_ours(capabilities.experimental):
            raise ConnectionRefusedError("this is hitlchat itself, whose tools are already here")
        link.client, link.protocol_version = client, client.protocol_version
        link.handshake_ms = (time.monotonic() - began) * 1000
        if info := client.server_info:
            link.server_name, link.server_version = (
                masked_line(text, link.hide, 100) for text in (info.name, info.version)
            )
        yield client


@asynccontextmanager
async def _transport(link: Link, auth: httpx2.Auth | None) -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:
        if link.spec.transport == "http":
            client = await stack.enter_async_context(http.client(link, auth=auth))
            most = http.most_bytes(link.spec)
            transport = streamable_http_client(link.spec.url, http_client=client, max_sse_event_size=most)
        elif link.spec.transport == "sse":
            transport = sse_client(link.spec.url, httpx_client_factory=partial(http.client, link), auth=auth)
        else:
            transport = stdio(link)
        reader, writer = await stack.enter_async_context(transport)
        yield TapReader(reader, link), TapWriter(writer, link)


class Tap:
    """One end of the SDK's streams. Everything not defined here is passed on to the stream behind it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        return await self._stream.__aexit__(*error)


class TapReader(Tap):
    def __init__(self, stream: Any, link: Link) -> None:
        super().__init__(stream)
        self._link = link
        self._period, self._came = 0, Counter[int]()
        self._dropped = 0

    async def receive(self) -> Item:
        while True:
            try:
                item: Item = await self._stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._link.drop("the server closed the connection")
                raise
            if isinstance(item, Exception):
                self._link.note(f"not understood: {item}")
                continue
            message = item.message
            if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and self._link.is_waiting(message.id):
                return self._answer(item, message)
            if self._is_wanted(message):
                return item
            self._dropped += 1
            if self._dropped == 1:
                self._link.note("sends more messages than anyone asked for: some are left out")
            if self._dropped % DROPPED_AT_ONCE == 0:
                await asyncio.sleep(DROPPED_PAUSE_SECONDS)

    def _answer(self, item: SessionMessage, message: types.JSONRPCResponse | types.JSONRPCError) -> SessionMessage:
        """Return an expected answer, or an error in its place if it cannot be used."""
        exchange = self._link.answered(message.id)
        if isinstance(message, types.JSONRPCError):
            return item
        if exchange is not None and exchange.tidy is not None:
            message.result = exchange.tidy(message.result)
        if not (why := complaint(message.result, self._link.spec.limits)):
            return item
        if exchange is not None:
            exchange.fail(Unreadable(f"the answer {why}"))
        error = types.ErrorData(code=types.INTERNAL_ERROR, message=f"the answer {why}")
        return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error))

    def _is_wanted(self, message: Any) -> bool:
        """Return whether an unexpected message is passed on."""
        period = int(time.monotonic() / PERIOD_SECONDS)
        if period != self._period:
            self._period, self._came = period, Counter()
        most = MOST_REQUESTS if isinstance(message, types.JSONRPCRequest) else MOST_NOTICES
        self._came[most] += 1
        return self._came[most] <= most and not complaint(getattr(message, "params", None), self._link.spec.limits)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class TapWriter(Tap):
    def __init__(self, stream: Any, link: Link) -> None:
        super().__init__(stream)
        self._link = link

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if not isinstance(message, types.JSONRPCRequest):
            await self._stream.send(item)
            return
        self._link.waiting[coerce_request_id(message.id)] = CURRENT.get()
        try:
            await self._stream.send(item)
        except BaseException:
            self._link.answered(message.id)
            raise
