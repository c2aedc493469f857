"""What the model reads about a call: the truth, with every outcome told apart (a contract; the words are ours)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hitlchat.base import canonical
from hitlchat.gate import queue, texts
from hitlchat.gate.models import Outcome, Tool
from hitlchat.gate.status import Status
from hitlchat.gate.texts import Texts, Told

# Provably not entered, or not sent.
_KINDS_BEFORE_A_RUN = frozenset({"arguments", "busy", "changed", "late", "unavailable", "unreachable", "unsent"})
# By what came back.
RAN = frozenset({"error", "result", "timeout", "tool"})
_NOT_RUN = "It was not run"


def ran(error: dict[str, Any]) -> bool | None:
    """None: its kind does not tell."""
    kind = error.get("kind")
    return None if kind not in _KINDS_BEFORE_A_RUN | RAN else kind in RAN


def sentence(error: dict[str, Any]) -> str:
    """What happened, for a person."""
    line = f" (line {error['line']})" if error.get("line") else ""
    lead = {True: "It was run and failed", False: _NOT_RUN, None: "It failed"}[ran(error)]
    return f"{lead}{line}: {str(error.get('message', '')).removeprefix(f'{_NOT_RUN}: ')}"


NEVER_RAN = "The call failed before it was run. It was not executed."
NOBODY_ASKED = "Nobody was asked about this call, since enough other calls wait. It was not executed."
NOBODY_ASKED_STATUS = "nobody_asked"
STILL_RUNNING = "It was still executing when the run ended; its outcome is not known yet. Do not repeat it."

MESSAGES = {
    Status.DECLINED: "The user declined this call. It was not executed. Do not call it again for this request.",
    Status.EXPIRED: "Nobody answered the approval in time. It was not executed.",
    Status.WITHDRAWN: "The call was withdrawn before it started. It was not executed.",
    Status.REFUSED: "A policy refused this call. It was not executed.",
    Status.REJECTED: "The call was rejected. It was not executed and nobody was asked.",
    Status.FAILED: "The call failed.",
    Status.UNKNOWN: "The outcome is unknown: it may or may not have happened. Do not repeat it.",
    Status.EXECUTING: STILL_RUNNING,
}
EDITED = "The user changed the arguments before approving."
NOT_EXECUTED = (Status.DECLINED, Status.EXPIRED, Status.WITHDRAWN, Status.REFUSED, Status.REJECTED)
# Without templates: all words are ours.
OURS: Texts = {}


@dataclass(frozen=True)
class Bound:
    """How much of a text is told, in characters, and the setting that says so, if there is one."""

    characters: int
    setting: str = ""

    def cut(self, text: str) -> str:
        hidden = len(text) - self.characters
        by = f" by {self.setting}" if self.setting else ""
        told = f"\n[cut here{by}: {hidden:,} more characters are kept in the record]"
        return text if hidden <= 0 else text[: self.characters] + told


# What a model in the chat reads of a result.
IN_CHAT = Bound(16_000)


def for_model(
    call: Told, *, decline_reason: str = "", edited: bool = False, templates: Texts = OURS, bound: Bound = IN_CHAT
) -> str:
    """The text of the tool message: the result itself, or a JSON object with `status` and `message`. Where the message
    is an operator's template, what it must not change stands beside it, as `executed` and as `fact`. `bound`: what
    is beyond it is cut off, and the text says so."""
    status = Status(call.status)
    if status == Status.SUCCEEDED:
        return bound.cut(_success(call, edited, templates))
    facts: dict[str, object] = {"status": status.value, "message": MESSAGES.get(status, "It was not executed.")}
    if status in NOT_EXECUTED:
        facts["executed"] = False
    if status == Status.DECLINED and decline_reason:
        facts["reason_given_by_the_user"] = decline_reason
    if status in (Status.REFUSED, Status.REJECTED, Status.WITHDRAWN):
        facts["reason"] = call.reason
    if call.reason in queue.REASONS:
        # No policy did.
        facts |= {"status": NOBODY_ASKED_STATUS, "message": NOBODY_ASKED}
    elif words := texts.message(call, templates, feedback=decline_reason):
        # Last, as the longest: what is cut off is never a fact.
        facts |= {"fact": facts.pop("message"), "message": words}
    if status == Status.FAILED and call.error:
        facts |= _failed(call.error)
    return bound.cut(canonical.pretty({name: fact for name, fact in facts.items() if fact is not None}))


def _failed(error: dict[str, Any]) -> dict[str, object]:
    has_run = ran(error)
    told = {} if has_run is not False else {"message": NEVER_RAN}
    return {**told, "executed": has_run, "error": error.get("message"), "line": error.get("line")}


def _success(call: Told, edited: bool, templates: Texts) -> str:
    if edited:
        words = texts.fill(templates.get(Outcome.EDITED, ""), call)
        return canonical.pretty(
            {
                "status": "succeeded",
                **({"fact": EDITED} if words else {}),
                "message": words or EDITED,
                "arguments": call.arguments,
                "result": call.result,
            }
        )
    return call.result if isinstance(call.result, str) else canonical.pretty(call.result)


SAMPLE_TOOL = "refund_order"
SAMPLE_ARGUMENTS = {"order": "4711", "amount": 12.5}
SAMPLE_FEEDBACK = "Wrong arguments"
SAMPLE_REASON = "Refunds are not made on Sundays."
SAMPLE_RESULT = "done"

# What holds without a template.
DEFAULTS: Mapping[str, str] = {
    Outcome.DECLINED: MESSAGES[Status.DECLINED],
    Outcome.FEEDBACK: "",
    Outcome.EDITED: EDITED,
    Outcome.EXPIRED: MESSAGES[Status.EXPIRED],
    Outcome.REFUSED: MESSAGES[Status.REFUSED],
}
_STATUSES = {
    Outcome.DECLINED: Status.DECLINED,
    Outcome.FEEDBACK: Status.DECLINED,
    Outcome.EDITED: Status.SUCCEEDED,
    Outcome.EXPIRED: Status.EXPIRED,
    Outcome.REFUSED: Status.REFUSED,
}


@dataclass(frozen=True)
class TextField:
    """`text` is the template itself, `instead` what holds while it is empty; `problem` says what is wrong with it."""

    outcome: str
    label: str
    text: str
    instead: str
    placeholders: tuple[str, ...]
    example: str
    problem: str = ""


@dataclass(frozen=True)
class MadeUp:
    """A call for an example: no row, and never one."""

    tool_name: str
    arguments: dict[str, Any]
    status: str
    reason: str = SAMPLE_REASON
    result: str = SAMPLE_RESULT
    error: None = None


def fields(tool: Tool | None, typed: Texts | None = None) -> list[TextField]:
    """Of the tool, or of all tools; as stored, or as `typed` and not saved yet."""
    own = dict(texts.own(tool) if typed is None else typed)
    above = texts.own(None) if tool else {}
    problems = {outcome: texts.problem(outcome, text) for outcome, text in own.items()}
    sound = {outcome: text for outcome, text in own.items() if text and not problems[outcome]}
    return [
        TextField(
            outcome=outcome.value,
            label=outcome.label,
            text=own.get(outcome, ""),
            instead=above.get(outcome) or DEFAULTS[outcome],
            placeholders=tuple(texts.placeholders(outcome)),
            example=example(outcome, tool, above | sound),
            problem=problems.get(outcome, ""),
        )
        for outcome in Outcome
    ]


def example(outcome: Outcome, tool: Tool | None, templates: Texts) -> str:
    """What a model would read about a made-up call of the tool."""
    call = MadeUp(
        tool_name=tool.name if tool else SAMPLE_TOOL,
        arguments=(tool.example if tool else None) or SAMPLE_ARGUMENTS,
        status=_STATUSES[outcome],
    )
    feedback = SAMPLE_FEEDBACK if outcome == Outcome.FEEDBACK else ""
    return for_model(call, decline_reason=feedback, edited=outcome == Outcome.EDITED, templates=templates)
