"""What a run asks of the server, prints and computes, and what it or a check says afterwards."""

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

from hitlchat.sandbox.limits import Limits


@dataclass
class Output:
    """Collects what a tool prints, up to a cap, and says what was cut."""

    limit: int
    named: str = ""
    _parts: list[str] = field(default_factory=list)
    _kept: int = 0
    _dropped: int = 0

    def write(self, _stream: str, text: str) -> None:
        data = text.encode("utf-8", "replace")
        room = max(0, self.limit - self._kept)
        if room:
            self._parts.append(data[:room].decode("utf-8", "ignore"))
        self._kept += min(room, len(data))
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


FaultKind = Literal["syntax", "error", "limit", "denied", "crash", "busy", "unavailable"]


@dataclass(frozen=True)
class Fault:
    """Why a run gave no result: one clear sentence, and where in the author's source if it is known."""

    kind: FaultKind
    message: str
    line: int | None = None
    function: str | None = None


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
