"""The client's connection: real HTTP to this very process, with everything that goes over it recorded."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from hitlchat.mcp_server.inspector.recording import Recording

# Streams are silent for 15 seconds at most.
TIMEOUT = httpx2.Timeout(10.0, read=120.0)

# Begins the title of what is recorded of an answer of HTTP that is an error.
REFUSED = "HTTP "


@dataclass(frozen=True)
class Address:
    """Where this process listens, and the name by which the browser knows it."""

    url: str
    host: str


@asynccontextmanager
async def connection(address: Address, secret: str, recording: Recording) -> AsyncIterator[Any]:
    """What the SDK's client takes for a transport."""

    async def look(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            body = (await response.aread())[:2000].decode(errors="replace")
            recording.trouble(f"{REFUSED}{response.status_code} {response.reason_phrase}", body)

    async with (
        httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {secret}", "Host": address.host},
            timeout=TIMEOUT,
            trust_env=False,
            # Of no use without TLS, and the usual one takes long to make.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            event_hooks={"response": [look]},
        ) as web,
        streamable_http_client(address.url, http_client=web) as (reading, writing),
    ):
        yield _Reading(reading, recording), _Writing(writing, recording)


class _Stream:
    """One end of the SDK's streams, with everything that it has."""

    def __init__(self, inner: Any, recording: Recording) -> None:
        self._inner, self._recording = inner, recording

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)

    def _note(self, item: SessionMessage | Exception, *, sent: bool) -> None:
        if isinstance(item, SessionMessage):
            self._recording.message(item.message, sent=sent)
        else:
            self._recording.trouble(type(item).__name__, str(item))


class _Reading(_Stream):
    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        item: SessionMessage | Exception = await self._inner.__anext__()
        self._note(item, sent=False)
        return item

    async def receive(self) -> SessionMessage | Exception:
        item: SessionMessage | Exception = await self._inner.receive()
        self._note(item, sent=False)
        return item


class _Writing(_Stream):
    async def send(self, item: SessionMessage) -> None:
        self._note(item, sent=True)
        await self._inner.send(item)
