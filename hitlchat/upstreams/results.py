"""What became of a call at its server, as the gate is told: every way to end told apart."""

from typing import assert_never

from hitlchat.base import canonical
from hitlchat.gate import contents
from hitlchat.gate.sources import OutcomeUnknown, ToolResult
from hitlchat.upstreams.wire import Answer, NeverRan, Outcome, Rejected, Unknown, Unreadable

LARGEST_RESULT = 2**20
LONGEST_MESSAGE = 4000


def result_of(outcome: Outcome, server: str) -> ToolResult:
    """OutcomeUnknown: the tool may have run."""
    match outcome:
        case Answer():
            return _answered(outcome)
        case Rejected(code, message):
            return _failure("rejected", f"The server {server} answered with an error instead ({code}): {message}")
        case NeverRan(reason):
            return _failure("unreachable", f"It was not run: {reason}.")
        case Unreadable(reason):
            return _failure("result", f"It was run, but what came back cannot be used: {reason}.")
        case Unknown(reason):
            raise OutcomeUnknown(f"The server {server} may have run it: {reason}.")
        case _:
            assert_never(outcome)


def _answered(answer: Answer) -> ToolResult:
    if answer.is_error:
        return _failure("tool", answer.text or "It failed, and its server did not say why.")
    value = contents.value(answer.content, answer.structured)
    try:
        size = len(canonical.dumps(value))
    except canonical.NotJson as error:
        return _failure("result", f"It was run, but its result cannot be kept: {error}.")
    if size > LARGEST_RESULT:
        told = f"It was run, but its result has {size:,} bytes; at most {LARGEST_RESULT:,} are kept."
        return _failure("result", told)
    return ToolResult(value=value, attachments=answer.attachments)


def _failure(kind: str, message: str) -> ToolResult:
    hidden = len(message) - LONGEST_MESSAGE
    cut = f"{message[:LONGEST_MESSAGE]}… (and {hidden:,} more characters)"
    return ToolResult.failure(kind, cut if hidden > 0 else message)
