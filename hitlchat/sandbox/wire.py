"""Frames between the server and a keeper, and what a run asks, prints, computes and reports in them."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import count
from types import TracebackType
from typing import Any, Literal

from hitlchat.sandbox.limits import Limits

LENGTH = struct.Struct(">I")
# Above what the limits let through in one frame; a longer one is a mistake of ours.
FRAME_BYTES = 64 * 1024 * 1024
PIECE = 256 * 1024
READ: dict[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
}

HostAnswer = dict[str, Any]


class Closed(Exception):
    """The other side is gone."""


class Channel:
    """One side of the connection. `mark` is the key of marked values: a secret, so that no fetched JSON can forge one.

    It belongs to no event loop: whoever holds it calls `begin` in the loop that then uses it.
    """

    def __init__(self, connection: socket.socket, mark: str) -> None:
        connection.settimeout(0)
        self._connection = connection
        self._mark = mark
        self._received = bytearray()
        self._writing = asyncio.Lock()
        self.whole = True

    def begin(self) -> None:
        self._writing = asyncio.Lock()

    def has_begun(self, seconds: float) -> bool:
        """Wait for the one byte that a keeper sends before any message, once it takes orders."""
        self._connection.settimeout(seconds)
        try:
            return bool(self._connection.recv(1))
        except TimeoutError:
            return False
        finally:
            self._connection.settimeout(0)

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises: Closed, when nobody reads"""
        frame = self.pack(message)
        loop = asyncio.get_running_loop()
        async with self._writing:
            self.whole = False  # until all of it is out: what is cancelled in the middle leaves half a frame
            try:
                await loop.sock_sendall(self._connection, frame)
            except OSError:
                raise Closed from None
            self.whole = True

    async def receive(self) -> dict[str, Any]:
        """The next message. Closed: there will be none."""
        loop = asyncio.get_running_loop()
        while (message := self._next()) is None:
            try:
                piece = await loop.sock_recv(self._connection, PIECE)
            except OSError:
                raise Closed from None
            if not piece:
                raise Closed
            self._received += piece
        return message

    def close(self) -> None:
        self._connection.close()

    def pack(self, message: dict[str, Any]) -> bytes:
        body = json.dumps(message, default=self._marked, separators=(",", ":")).encode()
        if len(body) > FRAME_BYTES:
            raise ValueError(f"a frame of {len(body)} bytes is larger than {FRAME_BYTES}")
        return LENGTH.pack(len(body)) + body

    def _next(self) -> dict[str, Any] | None:
        if len(self._received) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._received)
        end = LENGTH.size + length
        if len(self._received) < end:
            return None
        message: dict[str, Any] = json.loads(self._received[LENGTH.size : end], object_hook=self._unmarked)
        del self._received[:end]
        return message

    def _marked(self, value: object) -> dict[str, list[str]]:
        if isinstance(value, Decimal):
            return {self._mark: ["decimal", str(value)]}
        if isinstance(value, datetime):
            return {self._mark: ["datetime", value.isoformat()]}
        if isinstance(value, date):
            return {self._mark: ["date", value.isoformat()]}
        raise TypeError(f"a {type(value).__name__} cannot be sent")

    def _unmarked(self, found: dict[str, Any]) -> Any:
        if self._mark not in found:
            return found
        kind, text = found[self._mark]
        return READ[kind](text)


class Questions:
    """The questions of one run. An answer is `{"value": …}` or `{"error": [type, message]}`."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[HostAnswer]] = {}

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> HostAnswer:
        """Return the answer of the granted function `name` to plain JSON arguments."""
        return await self._ask({"name": name, "args": args, "kwargs": kwargs})

    async def sleep(self, seconds: float) -> None:
        await self._ask({"sleep": seconds})

    def answer(self, message: dict[str, Any]) -> None:
        waiting = self._open.pop(message.pop("answer"), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def _ask(self, question: dict[str, Any]) -> HostAnswer:
        number = next(self._numbers)
        self._open[number] = asyncio.get_running_loop().create_future()
        await self._channel.send({"call": number, **question})
        return await self._open[number]


@dataclass
class Output:
    """Collects what a tool prints, up to a cap, and says what was cut."""

    limit: int
    named: str = ""
    _parts: list[str] = field(default_factory=list)
    _size: int = 0
    _dropped: int = 0

    def write(self, _stream: str, text: str) -> None:
        data = text.encode("utf-8", "replace")
        room = max(0, self.limit - self._size)
        if room:
            self._parts.append(data[:room].decode("utf-8", "ignore"))
        self._size += min(room, len(data))
        self._dropped += max(0, len(data) - room)

    @property
    def text(self) -> str:
        cut = f"\n… {self._dropped} more bytes of output cut{self.named}" if self._dropped else ""
        return "".join(self._parts) + cut


class Worked:
    """A stopwatch: `with worked:` around each piece of work. Stopped: all pieces together are over the limit."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._seconds += time.process_time() - self._began
        if self._seconds > self._limits.cpu_seconds and not isinstance(error, Stopped):
            longest = f"{self._limits.cpu_seconds:g} s{self._limits.named('cpu_seconds')}"
            message = f"processor time: the functions that the tool calls compute for more than {longest}"
            raise Stopped(Fault("limit", message))


FaultKind = Literal["arguments", "syntax", "error", "limit", "denied", "crash", "busy", "unavailable"]


@dataclass(frozen=True)
class Fault:
    """The reason why a run gave no result: one clear sentence, and its line in the author's source if it has one."""

    kind: FaultKind
    message: str
    line: int | None = None


@dataclass(frozen=True)
class Report:
    """The outcome of one run: a JSON value or a fault, and what the tool printed."""

    result: Any
    output: str
    fault: Fault | None
    duration_ms: float

    @property
    def ok(self) -> bool:
        return self.fault is None


@dataclass(frozen=True)
class Problem:
    """One marker for the editor; line and column count from 1."""

    line: int | None
    column: int | None
    message: str
    severity: Literal["error", "warning"] = "error"


class Stopped(Exception):
    """The driver ends a run with this fault; the tool cannot catch it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault
