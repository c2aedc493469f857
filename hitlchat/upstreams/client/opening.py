"""Opening a connection: from a spec to one over which the handshake has succeeded."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import httpx2
from mcp.client import Client, ClientRequestContext, ClientSession, IncomingMessage
from mcp.client._transport import TransportStreams
from mcp.client.session import ElicitationFnT, MessageHandlerFnT
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult, Implementation, ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hitlchat.upstreams.client import http
from hitlchat.upstreams.client.child import stdio
from hitlchat.upstreams.client.exchange import told
from hitlchat.upstreams.client.link import Link, ask
from hitlchat.upstreams.client.spec import Surroundings
from hitlchat.upstreams.client.tap import tapped

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
        client_info=Implementation(name="hitlchat", version=surroundings.version),
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
        named = (told(info.name, link.hide, 100), told(info.version, link.hide, 100)) if info else ("", "")
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
            return _older(link, surroundings, auth)
        case "http":
            return _streamable(link, surroundings, auth)


@asynccontextmanager
async def _streamable(
    link: Link, surroundings: Surroundings, auth: httpx2.Auth | None
) -> AsyncIterator[TransportStreams]:
    largest = http.most_bytes(link.spec)
    async with (
        http.client(link, surroundings, auth) as web,
        streamable_http_client(link.spec.url, http_client=web, max_sse_event_size=largest) as streams,
    ):
        yield streams


@asynccontextmanager
async def _older(link: Link, surroundings: Surroundings, auth: httpx2.Auth | None) -> AsyncIterator[TransportStreams]:
    def factory(
        headers: dict[str, str] | None = None,  # noqa: ARG001
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001
        auth: httpx2.Auth | None = auth,
    ) -> httpx2.AsyncClient:
        return http.client(link, surroundings, auth)

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
