"""Server-sent events: an answer of HTTP that goes on for as long as its client listens."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

from django.http import StreamingHttpResponse

# Proxies that collect an answer before they pass it on are told not to.
HEADERS: Final = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
# Comments: no client hears of them, and every proxy sees that the answer goes on.
OPEN: Final = b": open\n\n"
KEEP_ALIVE: Final = b": keep-alive\n\n"


class EventStream(StreamingHttpResponse):
    """The answer. It is sent outside of the thread in which its view ran: its events ask the database by `in_db`."""

    def __init__(self, events: AsyncGenerator[bytes, None], headers: Mapping[str, str]) -> None:
        super().__init__(events, content_type="text/event-stream", headers={**HEADERS, **headers})
        self._events = events

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        # Itself, so that it is closed as soon as nobody listens: behind Django's own it would be left to be collected.
        return self._events


def event(data: Any) -> bytes:
    """Return `data` as an event: JSON on one line, in ASCII, as a model may write half a character."""
    return text(json.dumps(data, separators=(",", ":")))


def text(line: str) -> bytes:
    return f"data: {line}\n\n".encode("ascii")
