"""Opening a connection: from a spec to one over which the handshake has succeeded, with a tap that stops floods."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import anyio
import httpx2
from mcp.client import Client, ClientRequestContext, ClientSession, IncomingMessage
from mcp.client._transport import ReadStream, TransportStreams, WriteStream
from mcp.client.session import ElicitationFnT, MessageHandlerFnT
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    Implementation,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hitlchat.upstreams.client import http
from hitlchat.upstreams.client.link import CURRENT, Link, Pace, ask, masked_line
from hitlchat.upstreams.client.results import Unreadable, complaint
from hitlchat.upstreams.client.spec import VERSION, Surroundings
from hitlchat.upstreams.client.stdio import stdio

# Messages that nobody waits for: notices, progress, answers that come too late; and the server's own requests.
NOTICES_A_SECOND, NOTICES_AT_ONCE = 100.0, 1000.0
QUESTIONS_A_SECOND, QUESTIONS_AT_ONCE = 10.0, 100.0
# Those over it are read and dropped, which costs something as well.
LEFT_OUT_A_SECOND = 5000.0

Item = SessionMessage | Exception


class _Tap:
    """Base of both taps: whoever holds one ends the stream behind it."""

    def __init__(self, stream: ReadStream[Item] | WriteStream[SessionMessage], link: Link) -> None:
        self._stream, self._link = stream, link

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


class TapReader(_Tap):
    def __init__(self, inner: ReadStream[Item], link: Link) -> None:
        super().__init__(inner, link)
        self._inner = inner
        self._notices = Pace(NOTICES_A_SECOND, NOTICES_AT_ONCE)
        self._questions = Pace(QUESTIONS_A_SECOND, QUESTIONS_AT_ONCE)
        self._flood = Pace(LEFT_OUT_A_SECOND, LEFT_OUT_A_SECOND)
        self._left_out = 0

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Item:
        while True:
            try:
                item = await self._inner.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._link.drop("the server closed the connection")
                raise
            if isinstance(item, Exception):
                self._link.note(f"not understood: {item}")
            elif (passed := self._inspect(item)) is not None:
                return passed
            else:
                # Not read any faster, they cannot be sent any faster.
                await asyncio.sleep(self._flood.take())

    def _inspect(self, item: SessionMessage) -> SessionMessage | None:
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError) and self._link.is_waiting(message.id):
            exchange = self._link.answered(message.id)
            if isinstance(message, JSONRPCResponse) and exchange is not None and exchange.tidy is not None:
                message.result = exchange.tidy(message.result)
            if isinstance(message, JSONRPCResponse) and (said := complaint(message.result, self._link.spec.limits)):
                if exchange is not None:
                    exchange.fail(Unreadable(f"the answer {said}"))
                return SessionMessage(_failed(message.id, f"the answer {said}"))
            return item
        pace = self._questions if isinstance(message, JSONRPCRequest) else self._notices
        if pace.allows() and self._is_usable(message):
            return item
        self._leave_out()
        return None

    def _is_usable(self, message: Any) -> bool:
        return not complaint(getattr(message, "params", None), self._link.spec.limits)

    def _leave_out(self) -> None:
        self._left_out += 1
        if self._left_out == 1:
            self._link.note("sends more messages than anyone asked for: some are left out")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class TapWriter(_Tap):
    def __init__(self, inner: WriteStream[SessionMessage], link: Link) -> None:
        super().__init__(inner, link)
        self._inner = inner

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if not isinstance(message, JSONRPCRequest):
            await self._inner.send(item)
            return
        self._link.waiting[coerce_request_id(message.id)] = CURRENT.get()
        try:
            await self._inner.send(item)
        except BaseException:
            self._link.answered(message.id)
            raise


def tapped(streams: TransportStreams, link: Link) -> TransportStreams:
    reader, writer = streams
    return TapReader(reader, link), TapWriter(writer, link)


def _failed(request_id: RequestId | None, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=INTERNAL_ERROR, message=message))


# The SDK logs whatever a server sends that it does not understand, with a traceback each; the notes have it too.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)


class NotAllowed(Exception):
    """The kind of connection is switched off here."""


@dataclass
class Live:
    """An open connection. `handshake_ms`: how long it took to get here; `names`: of all tools that were ever listed."""

    client: Client
    link: Link
    handshake_ms: float
    protocol_version: str
    server_name: str = ""
    server_version: str = ""
    names: set[str] = field(default_factory=set)

    @property
    def session(self) -> ClientSession:
        return self.client.session

    @property
    def forgets(self) -> bool:
        """Return whether nothing more can come of a request that was given up.

        It had a stream of its own, which is closed.
        """
        return self.is_modern and self.link.spec.transport == "http"

    @property
    def is_modern(self) -> bool:
        return self.protocol_version in MODERN_PROTOCOL_VERSIONS


@asynccontextmanager
async def opened(link: Link, surroundings: Surroundings, auth: httpx2.Auth | None = None) -> AsyncIterator[Live]:
    """Enter and leave it in one task. Raises whatever the transports and the SDK raise, often in groups; NotAllowed."""
    began = time.monotonic()
    client = Client(
        _transport(link, surroundings, auth),
        cache=None,
        client_info=Implementation(name="hitlchat", version=VERSION),
        elicitation_callback=_questions(link),
        message_handler=_notices(link),
        mode="legacy" if link.spec.older_protocol else "auto",
    )
    async with client:
        capabilities = client.server_capabilities
        if capabilities is not None and surroundings.is_ours(capabilities.experimental):
            raise NotAllowed("this is hitlchat itself: its tools are here already")
        took = (time.monotonic() - began) * 1000
        info = client.server_info
        named = (
            (masked_line(info.name, link.hide, 100), masked_line(info.version, link.hide, 100)) if info else ("", "")
        )
        yield Live(client, link, took, client.protocol_version, *named)


@asynccontextmanager
async def _transport(
    link: Link, surroundings: Surroundings, auth: httpx2.Auth | None
) -> AsyncIterator[TransportStreams]:
    async with _untapped(link, surroundings, auth) as streams:
        yield tapped(streams, link)


def _untapped(
    link: Link, surroundings: Surroundings, auth: httpx2.Auth | None
) -> AbstractAsyncContextManager[TransportStreams]:
    match link.spec.transport:
        case "stdio":
            if not surroundings.allow_stdio:
                raise NotAllowed("starting programs as servers is switched off here (MCP_ALLOW_STDIO=1 allows it)")
            return stdio(link)
        case "sse":
            return _older(link, auth)
        case "http":
            return _streamable(link, auth)


@asynccontextmanager
async def _streamable(link: Link, auth: httpx2.Auth | None) -> AsyncIterator[TransportStreams]:
    largest = http.most_bytes(link.spec)
    async with (
        http.client(link, auth) as web,
        streamable_http_client(link.spec.url, http_client=web, max_sse_event_size=largest) as streams,
    ):
        yield streams


@asynccontextmanager
async def _older(link: Link, auth: httpx2.Auth | None) -> AsyncIterator[TransportStreams]:
    def factory(
        headers: dict[str, str] | None = None,  # noqa: ARG001
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001
        auth: httpx2.Auth | None = auth,
    ) -> httpx2.AsyncClient:
        return http.client(link, auth)

    async with sse_client(link.spec.url, httpx_client_factory=factory, auth=auth) as streams:
        yield streams


def _questions(link: Link) -> ElicitationFnT:
    async def asked(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG001
        return await ask(link, params)

    return asked


def _notices(link: Link) -> MessageHandlerFnT:
    async def noticed(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            link.changed.set()

    return noticed
