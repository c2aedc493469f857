"""Everything that went over the wire of one session, both ways, within bounds: the oldest goes first."""

import json
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import mcp_types as types
from django.utils import timezone

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
    """What is longer than a page can bear ends with how much is left out."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… and {len(text) - LONGEST:,} more characters"
