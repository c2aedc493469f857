"""The client's connection: real HTTP to this very process, and a bounded recording of what goes over it."""

import json
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import httpx2
import mcp_types as types
from django.utils import timezone
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

MOST_MESSAGES: Final = 500
MOST_CHARACTERS: Final = 1_000_000
LONGEST: Final = 16_000


@dataclass(frozen=True)
class Line:
    """One message. `milliseconds`: since the request that it answers; `number` grows by more than one at times."""

    number: int
    at: datetime
    sent: bool
    kind: str
    title: str
    text: str
    milliseconds: float | None = None

    @property
    def clock(self) -> str:
        return timezone.localtime(self.at).isoformat(timespec="milliseconds")[11:23]


class Recording:
    def __init__(self) -> None:
        self.lines: deque[Line] = deque()
        self.dropped = 0
        self._last = 0
        self._characters = 0
        # When each request that is not answered yet was made, and what it was: by who made it, and its id.
        self._open: dict[tuple[bool, str], tuple[float, str]] = {}

    @property
    def last(self) -> int:
        """The number of the last thing that happened."""
        return self._last

    def tick(self) -> int:
        """The number of one more thing that happened."""
        self._last += 1
        return self._last

    def message(self, message: types.JSONRPCMessage, *, sent: bool) -> None:
        told = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        kind, title, milliseconds = self._named(told, sent=sent)
        self._keep(kind, title, shown(told), sent=sent, milliseconds=milliseconds)

    def trouble(self, title: str, text: str) -> None:
        """Something that was no message."""
        self._keep("trouble", title, cut(text), sent=False)

    def _named(self, told: dict[str, Any], *, sent: bool) -> tuple[str, str, float | None]:
        method, id = told.get("method"), str(told.get("id"))
        if method is not None and "id" in told:
            while len(self._open) >= MOST_MESSAGES:
                del self._open[next(iter(self._open))]
            self._open[sent, id] = time.monotonic(), str(method)
            return "request", f"{method} #{id}", None
        if method is not None:
            return "notification", str(method), None
        # A response goes the other way than its request went.
        began, asked = self._open.pop((not sent, id), (None, "a request"))
        since = None if began is None else (time.monotonic() - began) * 1000
        return "error" if "error" in told else "result", f"{asked} #{id}", since

    def _keep(self, kind: str, title: str, text: str, *, sent: bool, milliseconds: float | None = None) -> None:
        line = Line(self.tick(), timezone.now(), sent, kind, title[:200], text, milliseconds)
        self.lines.append(line)
        self._characters += len(text)
        while len(self.lines) > MOST_MESSAGES or self._characters > MOST_CHARACTERS:
            self._characters -= len(self.lines.popleft().text)
            self.dropped += 1


def shown(value: Any) -> str:
    return cut(json.dumps(value, indent=2, ensure_ascii=False))


def cut(text: str) -> str:
    """Return the text as far as a page can bear it, with how much is left out."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… and {len(text) - LONGEST:,} more characters"


# Streams are silent for 15 seconds at most.
TIMEOUT = httpx2.Timeout(10.0, read=120.0)

# Begins the title of what is recorded of an answer of HTTP that is an error.
REFUSED = "HTTP "


@dataclass(frozen=True)
class Address:
    """The address where this process listens, and the name by which the browser knows it."""

    url: str
    host: str


@asynccontextmanager
async def connection(address: Address, secret: str, recording: Recording) -> AsyncIterator[Any]:
    """Yield what the SDK's client takes for a transport."""

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
