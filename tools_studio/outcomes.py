"""What the last run of a test case says about the tool as it is now."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from hitlchat.base import canonical
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.results import MESSAGES
from hitlchat.gate.status import Status
from tools_studio import linediff
from tools_studio.linediff import Line
from tools_studio.models import Expectation, TestCase

State = Literal["passed", "failed", "waiting", "running", "unsettled", "stale", "new"]

LABELS: dict[State, str] = {
    "passed": "Passed",
    "failed": "Failed",
    "waiting": "Waiting for an answer",
    "running": "Still running",
    "unsettled": "Not run",
    "stale": "Not run since the last edit",
    "new": "Never run",
}
UNDER_WAY = (Status.ALLOWED, Status.APPROVED, Status.EXECUTING)
FAILURES = (Status.FAILED, Status.REJECTED)


@dataclass(frozen=True)
class Outcome:
    """`said` is why it is so, in a sentence; `lines` show what was expected against what came."""

    state: State
    said: str = ""
    lines: list[Line] = field(default_factory=list)

    @property
    def label(self) -> str:
        return LABELS[self.state]


def of(case: TestCase, tool: Tool) -> Outcome:
    """What the last run of `case` came to. A run of another definition of the tool proves nothing."""
    call = case.last_call
    if call is None:
        return Outcome("new")
    if call.definition_hash != tool.definition_hash:
        return Outcome("stale")
    if call.status == Status.WAITING:
        return Outcome("waiting", "It asks first, like every call of this tool.")
    if call.status in UNDER_WAY:
        return Outcome("running")
    if call.status == Status.SUCCEEDED or call.status in FAILURES:
        return _judged(case, call)
    return Outcome("unsettled", call.reason or MESSAGES.get(Status(call.status), ""))


def tally(outcomes: Iterable[Outcome]) -> str:
    """`5 of 6 passed, 1 waits for an answer`."""
    states = [each.state for each in outcomes]
    waiting = states.count("waiting")
    waits = f", {waiting} {'waits' if waiting == 1 else 'wait'} for an answer" if waiting else ""
    return f"{states.count('passed')} of {len(states)} passed{waits}"


def text_of(value: Any) -> str:
    """A result as people read it, and as `contains` looks into it."""
    return value if isinstance(value, str) else canonical.pretty(value, indent=2)


def _judged(case: TestCase, call: ToolCall) -> Outcome:
    error = _error(call)
    if case.expectation == Expectation.FAILS:
        return _failing(str(case.expected or ""), call, error)
    if error is not None:
        return Outcome("failed", f"It failed: {error}")
    match case.expectation:
        case Expectation.EQUALS if canonical.dumps(call.result) != canonical.dumps(case.expected):
            return Outcome("failed", "The result is another.", _against(case.expected, call.result))
        case Expectation.CONTAINS if str(case.expected) not in text_of(call.result):
            return Outcome("failed", "The result does not contain it.", _against(case.expected, call.result))
    return Outcome("passed")


def _failing(wanted: str, call: ToolCall, error: str | None) -> Outcome:
    if error is None:
        return Outcome("failed", f"It was to fail, and it gave: {text_of(call.result)[:500]}")
    if wanted not in error:
        return Outcome("failed", "It failed as it was to, but says something else.", _against(wanted, error))
    return Outcome("passed")


def _error(call: ToolCall) -> str | None:
    """What went wrong in the tool, or with its arguments."""
    if call.status == Status.REJECTED:
        return call.reason
    return str((call.error or {}).get("message", "")) if call.status == Status.FAILED else None


def _against(expected: Any, actual: Any) -> list[Line]:
    texts = text_of(expected), text_of(actual)
    if texts[0] == texts[1]:  # a text against something else that reads the same
        texts = canonical.pretty(expected), canonical.pretty(actual)
    return linediff.lines(*texts)
