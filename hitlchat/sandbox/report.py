"""What a run or a check says afterwards."""

from dataclasses import dataclass
from typing import Any, Literal

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
